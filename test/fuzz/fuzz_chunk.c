/* The first two bytes are a limit, the third says what the rest is: the params of a chunk request (with one
 * stored answer, whose handle they may name as H, and which may have been changed since it was stored), or an
 * answer that is to be cut and joined again. */
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#include "chunk.h"
#include "chunk_store.h"
#include "scratch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char handle[CHUNK_HANDLE_LEN + 1];

static rpc_handler find(void *ctx, const char *method, void **handler_ctx)
{
    (void)ctx, (void)handler_ctx;
    return rpc_find(chunk_methods, method);
}

static void keep(void *arg, struct buf *response)
{
    struct buf *line = arg;
    buf_truncate(line, 0);
    buf_add(line, response->data, response->len);
}

/* Asks with these params, in which H stands for the handle. */
static void ask(struct buf *line, const char *params, size_t n)
{
    struct buf request BUF_AUTO = BUF_INIT;
    buf_adds(&request, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"" CHUNK_METHOD "\",\"params\":");
    for (size_t i = 0; i < n; i++)
        if (params[i] == 'H')
            buf_adds(&request, handle);
        else
            buf_addc(&request, params[i]);
    buf_addc(&request, '}');
    assert(!rpc_take(span_of(&request), find, NULL, (struct rpc_sink){keep, line}));
    assert(json_check(span_of(line), NULL) == 0);
}

static void cut(const char *path, off_t length)
{
    int fd = openat(scratch_fd, path, O_WRONLY | O_CLOEXEC);
    assert(fd >= 0 && ftruncate(fd, length) == 0);
    close(fd);
}

/* Somebody has cut it, written into it, or put something else in its place. */
static void change_stored(unsigned how, unsigned length)
{
    char path[64];
    snprintf(path, sizeof path, "answers/%s", handle);
    if (how % 4 == 0)
        cut(path, (off_t)length);
    else if (how % 4 == 1)
        assert(scratch_put(scratch_fd, path, "\377\0\"", 3, (off_t)length));
    else
        unlinkat(scratch_fd, path, 0);
    if (how % 4 == 3)
        assert(mkfifoat(scratch_fd, path, 0600) == 0);
}

static size_t number(struct span object, const char *key)
{
    struct span value;
    assert(json_member(object, key, &value, NULL));
    return strtoull(value.s, NULL, 10);
}

static void cut_and_join(const char *answer, size_t size, size_t limit)
{
    static const char piece_of[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"" CHUNK_METHOD "\":";
    struct buf line BUF_AUTO = BUF_INIT;
    char params[128];
    if (size >= sizeof piece_of - 1 && memcmp(answer, piece_of, sizeof piece_of - 1) == 0)
        return;                   /* a piece goes as it is */
    if (limit < 300 && size > 60) /* pieces of three bytes */
        size = 60;
    buf_add(&line, answer, size);
    assert(chunk_wrap(&line, (struct span){"1", 1}, limit, NULL) == 0);
    if (size < limit)
        return;
    for (size_t offset = 0; offset < size;) {
        struct span piece, text;
        assert(json_check(span_of(&line), NULL) == 0 && (line.len < limit || limit < 300));
        assert(json_member(span_of(&line), CHUNK_METHOD, &piece, NULL));
        assert(json_member(piece, "handle", &text, NULL) && text.n == CHUNK_HANDLE_LEN + 2);
        memcpy(handle, text.s + 1, CHUNK_HANDLE_LEN);
        assert(number(piece, "offset") == offset && number(piece, "total_size") == size);
        assert(number(piece, "next_offset") > offset);
        offset = number(piece, "next_offset");
        snprintf(params, sizeof params, "{\"handle\":\"H\",\"offset\":%zu}", offset);
        if (offset < size)
            ask(&line, params, strlen(params));
    }
    ask(&line, "{\"handle\":\"H\",\"release\":true}", 29);
    assert(chunk_open(handle) < 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf line BUF_AUTO = BUF_INIT;
    char limit[16];
    if (size < 3)
        return 0;
    scratch_make();
    snprintf(limit, sizeof limit, "%d", data[0] * 256 + data[1]);
    setenv("INSPECT_SANDBOX_JSON_RPC_RESPONSE_MAX_BYTES", limit, 1);
    const char *rest = (const char *)data + 3;
    if (data[2] % 2 == 0) {
        cut_and_join(rest, size - 3, chunk_limit(0));
        return 0;
    }
    assert(chunk_store((struct span){"0123456789", 10}, handle, NULL) == 0);
    if (data[2] % 4 == 3)
        change_stored(data[0], data[1]);
    ask(&line, rest, size - 3);
    chunk_remove(handle);
    assert(chunk_open(handle) < 0);
    return 0;
}
