/* Any bytes from an MCP server, read in pieces of two sizes (the first two bytes say which): the same lines.
 * Each line as a message, as an id, and as a line that was too long: ids lie within it, the same text is the
 * same id, and nothing is read beyond it. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tools/mcp/mcp_lines.h"
#include "tools/mcp/mcp_message.h"
#include "mem.h"

#define LONGEST 200

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool within(struct span part, struct span whole)
{
    return !part.s || (part.s >= whole.s && part.s + part.n <= whole.s + whole.n);
}

/* In a block of its own, so that reading beyond it is noticed. */
static void look_at(struct span line)
{
    char *copy = malloc(line.n + 1);
    struct span own = {copy, line.n}, half = {copy, line.n / 2}, rest = {copy + half.n, line.n - half.n};
    struct mcp_message m;
    memcpy(copy, line.s, line.n);
    copy = realloc(copy, line.n > 0 ? line.n : 1);
    own.s = half.s = copy;
    rest.s = copy + half.n;
    mcp_message_read(own, &m);
    assert(within(m.id, own) && within(m.method, own));
    struct span id = mcp_id_of_parts(half, rest);
    assert(within(id, half) || within(id, rest));
    if (m.kind != MCP_NOISE && m.id.s) {
        struct buf key BUF_AUTO = BUF_INIT;
        struct buf again BUF_AUTO = BUF_INIT;
        bool usable = mcp_id_key(m.id, &key);
        assert(usable == mcp_id_key(m.id, &again) && key.len == again.len);
        assert(usable == (json_kind(m.id) == JSON_STRING || json_kind(m.id) == JSON_NUMBER));
    }
    free(copy);
}

/* All lines that there are for the moment, written down. */
static void take(struct mcp_lines *l, struct buf *out, bool look)
{
    struct span line;
    enum mcp_lines_state state;
    while ((state = mcp_lines_next(l, &line)) != MCP_LINES_NONE) {
        assert(state == MCP_LINES_TOO_LONG || line.n <= LONGEST);
        if (look)
            look_at(line);
        /* how much there is of a long one's head depends on the cut */
        buf_addf(out, "%d:", (int)state);
        buf_add(out, line.s, line.n < LONGEST ? line.n : LONGEST);
    }
}

static void split(const uint8_t *data, size_t size, size_t step, struct buf *out, bool look)
{
    struct mcp_lines *l = mem_zalloc(sizeof *l);
    mcp_lines_init(l, LONGEST);
    for (size_t at = 0; at < size; at += step) {
        size_t room, n = size - at < step ? size - at : step;
        char *to = mcp_lines_room(l, &room);
        assert(n <= room);
        memcpy(to, data + at, n);
        mcp_lines_filled(l, n);
        take(l, out, look);
    }
    mcp_lines_finish(l);
    take(l, out, look);
    mcp_lines_release(l);
    free(l);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf one BUF_AUTO = BUF_INIT;
    struct buf other BUF_AUTO = BUF_INIT;
    if (size < 2)
        return 0;
    split(data + 2, size - 2, 1 + data[0], &one, true);
    split(data + 2, size - 2, 1 + data[1], &other, false);
    assert(one.len == other.len && memcmp(buf_str(&one), buf_str(&other), one.len) == 0);
    return 0;
}
