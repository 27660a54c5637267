/* Any bytes from an MCP client, in pieces of any size: what is said to them is lines of JSON-RPC, each with
 * what it has to have; no call is begun, and none is lost. The first byte says how long the pieces are. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands/mcp_serve/serve.h"

static void nothing(struct serve *s)
{
    (void)s;
}

static void take_line(struct serve *s, struct span line)
{
    serve_message(s, &s->client, NULL, line);
}

static const struct serve_owner owner = {
    .line = take_line, .stalled = nothing, .deaf = nothing, .advanced = nothing};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_message(struct span message)
{
    struct span member;
    assert(json_kind(message) == JSON_OBJECT);
    assert(json_member(message, "jsonrpc", &member, NULL) && json_string_is(member, "2.0"));
    int answers =
        json_member(message, "result", &member, NULL) + json_member(message, "error", &member, NULL);
    bool told = json_member(message, "method", &member, NULL);
    assert(answers + told == 1);
    if (json_member(message, "id", &member, NULL))
        assert(json_kind(member) == JSON_STRING || json_kind(member) == JSON_NUMBER ||
               json_kind(member) == JSON_NULL);
}

static void check_line(struct span line)
{
    struct span element;
    assert(json_check(line, NULL) == 0);
    if (json_kind(line) != JSON_ARRAY) {
        check_message(line);
        return;
    }
    for (size_t at = 0; json_element(line, &at, &element);)
        check_message(element);
}

static void check_output(struct fifo *out)
{
    struct buf text BUF_AUTO = BUF_INIT;
    fifo_peek(out, out->len, &text);
    assert(text.len == 0 || text.data[text.len - 1] == '\n');
    for (char *line = text.data; line && line < text.data + text.len;) {
        char *end = memchr(line, '\n', (size_t)(text.data + text.len - line));
        check_line((struct span){line, (size_t)(end - line)});
        line = end + 1;
    }
    fifo_release(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct serve_offer all = {.tools = "*", .prefix = ""}; /* whatever browsers there are here */
    int ends[2];
    struct serve s = {.owner = &owner,
                      .pid = getpid(),
                      .offer = &all,
                      .client = {.level = LEVEL_WARNING},
                      .in = {.line = BUF_INIT},
                      .calls = {.n_workers = SERVE_WORKERS_MAX}};
    s.calls.last = &s.calls.first;
    s.loop = loop_new(NULL);
    if (!s.loop || pipe(ends) < 0)
        abort();
    s.out.source = loop_fd(s.loop, ends[1], 0, NULL, NULL);
    size_t step = size > 0 && data[0] > 0 ? data[0] : size;
    for (size_t at = size > 0; at < size; at += step)
        serve_feed(&s, (const char *)data + at, size - at < step ? size - at : step);
    s.in.ended = true;
    serve_feed_end(&s);
    while (s.calls.first) {
        struct call *c = s.calls.first;
        assert(c->process.pid == 0 && (c->tool || !c->origin.batch));
        serve_nothing(&s, &c->origin);
        serve_call_end(c);
    }
    assert(s.calls.n == 0 && s.calls.bytes == 0 && !s.calls.lanes);
    check_output(&s.out.waiting);
    buf_release(&s.in.line);
    loop_drop(&s.out.source);
    loop_free(s.loop);
    close(ends[0]);
    close(ends[1]);
    return 0;
}
