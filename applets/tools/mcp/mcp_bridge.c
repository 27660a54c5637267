#include "mcp_bridge.h"

#include <string.h>

#include "io.h"
#include "mcp_odd.h"
#include "utf8.h"

#define ODD_MS 500            /* for an answer of the right form behind one of another */
#define PRETTY_MAX (4u << 20) /* bytes of an answer of several lines */
#define ASKED_MAX 256   /* requests of the server's that nobody has taken; more are answered with an error */
#define SPOILED_MS 5000 /* for the right answer behind one that was no JSON */

/* ---- bytes ---- */

static bool is_good(const struct mcp_bridge *b, const char *s, size_t n)
{
    if (!b->ascii)
        return utf8_is_valid(s, n);
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)s[i] > 0x7F)
            return false;
    return true;
}

/* How many bytes at s belong together, and whether they are good ones. */
static size_t sequence(const struct mcp_bridge *b, const char *s, size_t n, bool *good)
{
    if (!b->ascii)
        return utf8_sequence(s, n, good);
    *good = (unsigned char)*s <= 0x7F;
    return 1;
}

/* The line with its bad bytes dealt with, behind a gap in `clean` when there are any. False: it is dropped.
 */
static bool clean_line(const struct mcp_bridge *b, struct span *line, struct buf *clean)
{
    if ((b->bad_bytes == MCP_STRICT && !b->ascii) || is_good(b, line->s, line->n))
        return true; /* that is checked with the JSON */
    if (b->bad_bytes == MCP_STRICT)
        return false;
    buf_add(clean, (const char[MCP_LINES_GAP]){0}, MCP_LINES_GAP);
    buf_reserve(clean, line->n);
    for (size_t at = 0, n; at < line->n; at += n) {
        bool good;
        n = sequence(b, line->s + at, line->n - at, &good);
        if (good)
            buf_add(clean, line->s + at, n);
        else if (b->bad_bytes == MCP_REPLACE)
            buf_adds(clean, UTF8_REPLACEMENT);
    }
    *line = (struct span){clean->data + MCP_LINES_GAP, clean->len - MCP_LINES_GAP};
    return true;
}

/* Other characters than ASCII's stand in strings alone, where an escape is as good. */
static void escape(struct buf *line)
{
    struct buf out = BUF_INIT;
    buf_reserve(&out, line->len);
    for (size_t i = 0, n; i < line->len; i += n) {
        const unsigned char *s = (const unsigned char *)line->data + i;
        n = 1;
        if (*s < 0x80) {
            buf_addc(&out, (char)*s);
            continue;
        }
        n = (size_t)utf8_char(line->data + i, line->len - i);
        unsigned c = *s & (0x7Fu >> n);
        for (size_t k = 1; k < n; k++)
            c = c << 6 | (s[k] & 0x3Fu);
        if (c > 0xFFFF)
            buf_addf(&out, "\\u%04x\\u%04x", 0xD7C0 + (c >> 10), 0xDC00 + (c & 0x3FF));
        else
            buf_addf(&out, "\\u%04x", c);
    }
    buf_release(line);
    *line = out;
}

/* ---- to the server ---- */

static int ended(const struct mcp_bridge *b, struct err *err)
{
    struct buf why BUF_AUTO = BUF_INIT;
    if (b->killed)
        return err_set(err, ERR_TOOL, "the MCP server was killed (mcp_kill_server)");
    mcp_process_put_end(&b->process, &why);
    return err_set(err, ERR_TOOL, "%s", why.data);
}

static int can_send(const struct mcp_bridge *b, struct err *err)
{
    return b->killed || b->process.end.over || b->process.deaf ? ended(b, err) : 0;
}

/* With its newline. */
static int send_line(struct mcp_bridge *b, struct buf *line, struct err *err)
{
    if (b->ascii)
        escape(line);
    if (mcp_process_send(&b->process, span_of(line)) == 0)
        return 0;
    return err_set(
        err, ERR_TOOL, "the MCP server doesn't read: %zu bytes wait for it, more than %zu MiB are not kept",
        b->process.to.queue.len,
        memory_share(&b->process.to.share, b->process.to.queue.len + line->len, MCP_QUEUE_MAX) >> 20);
}

static void on_deadline(void *arg)
{
    struct mcp_bridge *b = arg;
    struct buf id BUF_AUTO = BUF_INIT;
    long long left;
    while (mcp_requests_overdue(&b->requests, &id, &left)) {
        struct buf line BUF_AUTO = BUF_INIT;
        buf_adds(&line,
                 "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":");
        buf_add(&line, id.data, id.len);
        buf_adds(&line, ",\"reason\":\"timeout\"}}\n");
        if (id.len > 0 && can_send(b, NULL) == 0)
            send_line(b, &line, NULL);
        buf_truncate(&id, 0);
    }
    if (left >= 0)
        loop_timer_set(b->deadline, left > 0 ? left : 1);
    else
        loop_drop(&b->deadline);
}

/* The next look is at the earliest of all, which may be this one. */
static void set_deadline(struct mcp_bridge *b, struct mcp_request *r, long long timeout_ms)
{
    mcp_request_due(r, now_ms() + timeout_ms);
    if (!b->deadline)
        b->deadline = loop_timer(b->loop, timeout_ms, on_deadline, b);
    else if (loop_timer_left(b->deadline) > timeout_ms)
        loop_timer_set(b->deadline, timeout_ms);
}

void mcp_bridge_request(struct mcp_bridge *b, struct rpc_call *call, struct span request,
                        long long timeout_ms)
{
    struct buf line BUF_AUTO = BUF_INIT;
    struct mcp_message m;
    struct err err;
    if (mcp_message_check(request, MCP_REQUEST, "request", &m, &err) < 0) {
        rpc_fail(call, &err);
        return;
    }
    if (mcp_requests_resume(&b->requests, call, request, &m))
        return;
    struct mcp_request *r =
        can_send(b, &err) == 0 ? mcp_requests_open(&b->requests, call, request, &m, &line, &err) : NULL;
    if (!r)
        rpc_fail(call, &err);
    else if (send_line(b, &line, &err) < 0)
        mcp_request_fail(r, &err);
    else {
        mcp_request_sent(r, b->process.to.queued);
        if (timeout_ms >= 0)
            set_deadline(b, r, timeout_ms > 0 ? timeout_ms : 1);
    }
}

int mcp_bridge_respond(struct mcp_bridge *b, struct span response, struct err *err)
{
    struct buf line BUF_AUTO = BUF_INIT;
    if (mcp_response_check(response, err) < 0 || can_send(b, err) < 0)
        return -1;
    json_compact(&line, response);
    buf_addc(&line, '\n');
    return send_line(b, &line, err);
}

int mcp_bridge_notify(struct mcp_bridge *b, struct span notification, struct err *err)
{
    struct buf line BUF_AUTO = BUF_INIT;
    struct mcp_message m;
    if (mcp_message_check(notification, MCP_NOTIFICATION, "notification", &m, err) < 0 ||
        can_send(b, err) < 0)
        return -1;
    json_compact(&line, notification);
    buf_addc(&line, '\n');
    return send_line(b, &line, err);
}

/* ---- from the server ---- */

/* Nobody is there who could do what it asks for; but it is not to wait for an answer. */
static void answer_server(struct mcp_bridge *b, const struct mcp_message *m)
{
    struct buf line BUF_AUTO = BUF_INIT;
    struct err err;
    if (json_string_is(m->method, "ping")) {
        rpc_put_result(&line, m->id, (struct span){"{}", 2});
    } else {
        err_set(&err, ERR_METHOD_NOT_FOUND, "Method not found: the client answers no requests but ping");
        rpc_put_error(&line, m->id, &err);
    }
    buf_addc(&line, '\n');
    if (can_send(b, NULL) == 0)
        send_line(b, &line, NULL); /* where too much waits for it already it does without */
}

static bool take_response(struct mcp_bridge *b, const struct mcp_message *m, struct span line,
                          struct buf *clean)
{
    struct mcp_request *r = mcp_requests_find(&b->requests, m->id);
    size_t id = MCP_LINES_GAP + (size_t)(m->id.s - line.s);
    if (!r)
        return false;
    b->initialized = b->initialized || (!m->failed && mcp_request_is(r, "initialize"));
    if (clean->len == 0)
        mcp_lines_take(&b->process.lines, line, clean);
    buf_truncate(clean, MCP_LINES_GAP + line.n);
    mcp_request_answer(r, clean, id, m->id.n);
    return true;
}

static void take_note(struct mcp_bridge *b, struct span line)
{
    mcp_notes_add(&b->notes, line);
    b->owner.noted(b->owner.arg);
}

static bool take_message(struct mcp_bridge *b, struct span line, struct buf *clean)
{
    struct mcp_message m;
    mcp_message_read(line, &m);
    switch (m.kind) {
    case MCP_RESPONSE:
        return take_response(b, &m, line, clean);
    case MCP_REQUEST:
        if (b->answers && !json_string_is(m.method, "ping") && b->asked.n < ASKED_MAX &&
            line.n <= MCP_NOTES_BYTES)
            mcp_notes_add(&b->asked, line);
        else
            answer_server(b, &m);
        if (b->followed)
            take_note(b, line);
        else if (b->asked.n > 0)
            b->owner.noted(b->owner.arg);
        return true;
    case MCP_NOTIFICATION:
        take_note(b, line);
        return true;
    default:
        return false;
    }
}

static void on_spoiled(void *arg)
{
    struct mcp_bridge *b = arg;
    struct err err;
    err_set(&err, ERR_TOOL,
            "the MCP server's answer is no valid JSON in UTF-8 on one line, or has neither result nor error, "
            "so that "
            "it can't be passed on: '%s'",
            b->broken.seen);
    if (mcp_requests_fail_spoiled(&b->requests, now_ms() - SPOILED_MS, &err))
        loop_timer_set(b->broken.spoiled, SPOILED_MS);
    else
        loop_drop(&b->broken.spoiled);
}

static void spoil(struct mcp_bridge *b, struct span id, struct span line)
{
    if (!mcp_requests_spoil(&b->requests, id))
        return;
    size_t n = line.n < sizeof b->broken.seen - 1 ? line.n : sizeof b->broken.seen - 1;
    n = utf8_is_valid(line.s, n) ? n : 0;
    memcpy(b->broken.seen, line.s, n);
    b->broken.seen[n] = '\0';
    if (!b->broken.spoiled)
        b->broken.spoiled = loop_timer(b->loop, SPOILED_MS, on_spoiled, b);
}

/* No better one has come. */
static void on_odd(void *arg)
{
    struct mcp_bridge *b = arg;
    struct mcp_message m;
    struct buf text = BUF_INIT;
    loop_drop(&b->broken.odd);
    for (struct mcp_request *r; (r = mcp_requests_take_held(&b->requests, &text)) != NULL;) {
        struct span line = {text.data + MCP_LINES_GAP, text.len - MCP_LINES_GAP};
        mcp_message_read(line, &m);
        b->initialized = b->initialized || (!m.failed && mcp_request_is(r, "initialize"));
        mcp_request_answer(r, &text, MCP_LINES_GAP + (size_t)(m.id.s - line.s), m.id.n);
    }
}

/* A text out of a line that is no message. */
static bool take_text(struct mcp_bridge *b, struct span text)
{
    struct buf clean BUF_AUTO = BUF_INIT;
    struct mcp_message m;
    struct span id = mcp_odd_nothing(text);
    if (id.s)
        spoil(b, id, text); /* there may be a right one behind it */
    buf_add(&clean, (const char[MCP_LINES_GAP]){0}, MCP_LINES_GAP);
    if (!mcp_odd_answer(text, &clean))
        buf_add(&clean, text.s, text.n);
    struct span line = {clean.data + MCP_LINES_GAP, clean.len - MCP_LINES_GAP};
    mcp_message_read(line, &m);
    if (m.kind != MCP_RESPONSE)
        return take_message(b, line, &clean);
    struct mcp_request *r = mcp_requests_find(&b->requests, m.id);
    if (!r)
        return false;
    mcp_request_hold(r, &clean);
    if (!b->broken.odd)
        b->broken.odd = loop_timer(b->loop, ODD_MS, on_odd, b);
    return true;
}

static bool take_odd(struct mcp_bridge *b, struct span line)
{
    struct span text;
    bool any = false;
    for (size_t at = 0; mcp_odd_next(line, &at, &text);)
        any = take_text(b, text) || any;
    return any;
}

/* An answer that is written as people read it: from a brace alone to the one in front of a line. */
static bool take_pretty(struct mcp_bridge *b, struct span line)
{
    struct buf whole BUF_AUTO = BUF_INIT;
    if (b->broken.pretty.len == 0 && !(line.n == 1 && *line.s == '{'))
        return false;
    buf_add(&b->broken.pretty, line.s, line.n);
    buf_addc(&b->broken.pretty, ' ');
    if (b->broken.pretty.len <= PRETTY_MAX && !(line.n > 0 && *line.s == '}'))
        return true;
    if (json_check(span_of(&b->broken.pretty), NULL) == 0)
        json_compact(&whole, span_of(&b->broken.pretty));
    buf_release(&b->broken.pretty);
    return whole.len > 0 && take_text(b, span_of(&whole));
}

static bool take_line(struct mcp_bridge *b, struct span line)
{
    struct buf clean BUF_AUTO = BUF_INIT;
    if (!clean_line(b, &line, &clean))
        return false;
    while (line.n > 0 && strchr("\r\t ", line.s[line.n - 1]) && line.s[line.n - 1])
        line.n--;
    if (line.n > 0 && take_message(b, line, &clean))
        return true;
    return take_odd(b, line) || take_pretty(b, line);
}

/* Whose answer it was had better learn that it won't come. */
static bool take_long_line(struct mcp_bridge *b, struct span head)
{
    struct span id = mcp_id_of_parts(head, span_of(&b->process.lines.tail));
    struct mcp_request *r = id.s ? mcp_requests_find(&b->requests, id) : NULL;
    struct err err;
    if (!r)
        return false;
    err_set(&err, ERR_TOOL,
            "the MCP server's answer is a line of more than %zu bytes (INSPECT_MCP_READLINE_LIMIT_BYTES)",
            b->process.lines.max);
    mcp_request_fail(r, &err);
    return true;
}

/* No message: mostly noise. An answer that got broken is told its caller, who would wait for nothing; but a
 * right one may follow it, as after two threads that have printed at once. */
static void take_noise(struct mcp_bridge *b, struct span line)
{
    struct span id;
    b->broken.dropped++;
    if (mcp_is_broken_response(line, &id))
        spoil(b, id, line);
    else if (mcp_odd_begins(line))
        spoil(b, (struct span){NULL, 0}, line);
}

static void on_line(void *arg, enum mcp_lines_state state, struct span line)
{
    struct mcp_bridge *b = arg;
    if (state == MCP_LINES_LINE && (!take_line(b, line) || (line.n == 1 && *line.s == '{')))
        take_noise(b, line);
    else if (state == MCP_LINES_TOO_LONG && !take_long_line(b, line))
        b->broken.dropped++;
}

/* ---- its end ---- */

static void fail_open(struct mcp_bridge *b, unsigned long long written)
{
    struct err err;
    ended(b, &err);
    mcp_requests_fail(&b->requests, written, &err);
}

static void on_ended(void *arg)
{
    struct mcp_bridge *b = arg;
    fail_open(b, 0);
    b->owner.noted(b->owner.arg);
}

static void on_deaf(void *arg)
{
    struct mcp_bridge *b = arg;
    fail_open(b, b->process.to.written);
}

static void on_reaped(void *arg)
{
    struct mcp_bridge *b = arg;
    b->owner.reaped(b->owner.arg);
}

void mcp_bridge_hang_up(struct mcp_bridge *b)
{
    b->killed = true;
    mcp_process_close_stdin(&b->process);
    fail_open(b, 0);
}

int mcp_bridge_start(struct mcp_bridge *b, struct loop *loop, struct spawn *s, size_t line_max,
                     struct err *err)
{
    b->loop = loop;
    buf_init(&b->broken.pretty, BUF_NO_MAX);
    static const struct mcp_process_events events = {on_line, on_ended, on_deaf, on_reaped};
    return mcp_process_start(&b->process, loop, s, line_max, &events, b, err);
}
