#include "serve_events.h"

#include <stdlib.h>
#include <string.h>

#include "io.h"
#include "mem.h"
#include "rpc.h"

struct sse_event {
    struct sse_event *next;
    unsigned number;
    struct buf text;
};

static void on_gone(void *arg)
{
    struct sse *st = arg;
    st->conn = NULL;
    st->begun = st->waits = false;
    st->owner.gone(st, st->owner.arg);
}

static void attach(struct sse *st, struct proxy_conn *conn)
{
    st->conn = conn;
    proxy_on_gone(conn, on_gone, st);
}

struct sse *sse_new(struct sse **list, struct proxy_conn *conn, void (*gone)(struct sse *st, void *arg),
                    void *arg)
{
    struct sse *st = mem_zalloc(sizeof *st);
    *st =
        (struct sse){.next = *list, .fields = "", .since_ms = now_ms(), .owner.gone = gone, .owner.arg = arg};
    st->events.last = &st->events.first;
    *list = st;
    attach(st, conn);
    return st;
}

static void drop_first(struct sse *st)
{
    struct sse_event *e = st->events.first;
    st->events.first = e->next;
    if (!st->events.first)
        st->events.last = &st->events.first;
    st->events.bytes -= e->text.len;
    buf_release(&e->text);
    free(e);
}

void sse_free(struct sse **list, struct sse *st)
{
    while (*list != st)
        list = &(*list)->next;
    *list = st->next;
    while (st->events.first)
        drop_first(st);
    free(st);
}

/* ---- events ---- */

static void put_event(const struct sse *st, const struct sse_event *e, struct buf *out)
{
    buf_addf(out, "event: message\nid: %u-%u\ndata: ", st->number, e->number);
    buf_add(out, e->text.data, e->text.len);
    buf_adds(out, "\n\n");
}

static const struct sse_event *keep(struct sse *st, struct span message)
{
    struct sse_event *e = mem_zalloc(sizeof *e);
    e->number = ++st->events.n;
    buf_init(&e->text, BUF_NO_MAX);
    buf_add(&e->text, message.s, message.n);
    *st->events.last = e;
    st->events.last = &e->next;
    st->events.bytes += message.n;
    while (st->events.bytes > SSE_KEPT_MAX && st->events.first != e)
        drop_first(st);
    return e;
}

/* Its connection is the server's again. */
static void let_go(struct sse *st)
{
    proxy_on_gone(st->conn, NULL, NULL);
    st->conn = NULL;
    st->begun = st->waits = false;
}

static void pass_on(struct sse *st, struct buf *text, bool last)
{
    struct proxy_conn *conn = st->conn;
    struct events plan;
    if (!last) {
        proxy_stream_text(conn, span_of(text));
        return;
    }
    events_init(&plan);
    buf_add(&plan.text, text->data, text->len);
    if (text->len == 0)
        buf_adds(&plan.text, ":\n\n");
    let_go(st);
    proxy_stream_end(conn, &plan);
}

void sse_said(struct sse *st, struct span message, bool last)
{
    struct buf text BUF_AUTO = BUF_INIT;
    const struct sse_event *e = message.s ? keep(st, message) : NULL;
    st->since_ms = now_ms();
    st->ended = st->ended || last;
    if (st->waits && last)
        sse_answer(st);
    if (!st->begun)
        return;
    if (e)
        put_event(st, e, &text);
    pass_on(st, &text, last);
}

void sse_begin(struct sse *st, unsigned after)
{
    struct buf text BUF_AUTO = BUF_INIT;
    char *fields MEM_AUTO = mem_printf("Content-Type: text/event-stream\r\n%s", st->fields);
    proxy_stream(st->conn, fields);
    st->begun = true;
    if (st->primes && after == 0)
        buf_addf(&text, "id: %u-0\nretry: 1000\ndata: \n\n", st->number);
    else
        buf_adds(&text, ":\n\n"); /* so that the head is on its way */
    for (const struct sse_event *e = st->events.first; e; e = e->next)
        if (e->number > after)
            put_event(st, e, &text);
    pass_on(st, &text, st->ended);
}

void sse_take_up(struct sse *st, struct proxy_conn *conn, unsigned after)
{
    sse_hang_up(st);
    attach(st, conn);
    sse_begin(st, after);
}

void sse_beat(struct sse *st)
{
    struct buf text BUF_AUTO = BUF_INIT;
    if (!st->begun || now_ms() - st->since_ms < SSE_BEAT_MS)
        return;
    st->since_ms = now_ms();
    buf_adds(&text, ":\n\n");
    pass_on(st, &text, false);
}

void sse_hang_up(struct sse *st)
{
    struct buf nothing BUF_AUTO = BUF_INIT;
    struct proxy_conn *conn = st->conn;
    if (st->begun) {
        pass_on(st, &nothing, true);
    } else if (conn) {
        let_go(st);
        proxy_answer(conn, 503, "", (struct span){"", 0});
    }
}

/* ---- one text ---- */

/* The status of an answer that is an error. */
static int status_of(const struct sse *st, struct span message)
{
    struct span error, code, id;
    if (json_kind(message) != JSON_OBJECT || !json_member(message, "error", &error, NULL) ||
        !json_member(error, "code", &code, NULL))
        return 200;
    bool has_id = json_member(message, "id", &id, NULL) && json_kind(id) != JSON_NULL;
    long n = strtol(code.s, NULL, 10);
    if (!st->strict)
        return has_id ? 200 : 400;
    return n == ERR_METHOD_NOT_FOUND                 ? 404
           : n <= -32600 && n != -32603              ? 400
           : n <= SSE_HEADER_MISMATCH && n >= -32022 ? 400
                                                     : 200;
}

void sse_answer(struct sse *st)
{
    struct proxy_conn *conn = st->conn;
    const struct sse_event *e = st->events.first;
    if (!st->ended && st->conn) {
        st->waits = true;
        return;
    }
    while (e && e->next) /* what was said on the way is left out */
        e = e->next;
    struct span text = e ? (struct span){e->text.data, e->text.len} : (struct span){"", 0};
    char *fields MEM_AUTO = mem_printf("%s%s", e ? "Content-Type: application/json\r\n" : "", st->fields);
    let_go(st);
    proxy_answer(conn, e ? status_of(st, text) : 202, fields, text);
    while (st->events.first)
        drop_first(st);
    st->done = true;
}
