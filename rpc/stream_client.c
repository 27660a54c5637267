#include "stream_client.h"

#include <stdlib.h>
#include <string.h>

#include "mem.h"
#include "memory_share.h"
#include "rpc.h"
#include "stream.h"

#define SILENT_TICKS 4

struct stream_request {
    struct stream_client *client;
    struct stream_request *next, **link;
    unsigned long long number; /* its id on the stream */
    char *id;                  /* that of its caller */
    void *work;
    unsigned long long events; /* the number of the last */
    bool answered;
};

struct stream_client {
    struct stream_client_owner owner;
    struct stream_request *first, **last;
    unsigned long long numbers;
    struct buf in, out;
    size_t looked; /* bytes of the input in which there is no newline */
    struct memory_share share;
    bool greeted;
    int silent; /* ticks */
};

struct stream_client *stream_client_new(const struct stream_client_owner *owner)
{
    struct stream_client *c = mem_zalloc(sizeof *c);
    c->owner = *owner;
    c->last = &c->first;
    buf_init(&c->in, STREAM_ANSWER_MAX);
    buf_init(&c->out, BUF_NO_MAX);
    return c;
}

static void request_free(struct stream_request *r)
{
    *r->link = r->next;
    *(r->next ? &r->next->link : &r->client->last) = r->link;
    free(r->id);
    free(r);
}

void stream_client_free(struct stream_client *c)
{
    while (c->first)
        /* What is freed is in the list no more. NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
        request_free(c->first);
    buf_release(&c->in);
    buf_release(&c->out);
    free(c);
}

/* ---- out ---- */

/* Text with other bytes in the place of a part of it. */
static void put_with(struct buf *out, struct span text, struct span part, struct span other)
{
    size_t before = (size_t)(part.s - text.s);
    buf_reserve(out, text.n + other.n + 1);
    buf_add(out, text.s, before);
    buf_add(out, other.s, other.n);
    buf_add(out, part.s + part.n, text.n - before - part.n);
}

struct stream_request *stream_client_send(struct stream_client *c, struct span text, struct span id,
                                          void *work)
{
    struct buf number BUF_AUTO = BUF_INIT;
    struct stream_request *r = NULL;
    if (id.s) {
        r = mem_zalloc(sizeof *r);
        *r = (struct stream_request){
            .client = c, .number = ++c->numbers, .id = mem_dup(id.s, id.n), .work = work, .link = c->last};
        *c->last = r;
        c->last = &r->next;
        buf_addf(&number, "%llu", r->number);
        put_with(&c->out, text, id, span_of(&number));
    } else {
        buf_add(&c->out, text.s, text.n);
    }
    buf_addc(&c->out, '\n');
    return r;
}

void stream_client_settle(struct stream_request *r, bool delivered)
{
    if (delivered)
        buf_addf(&r->client->out,
                 "{\"jsonrpc\":\"2.0\",\"method\":\"rpc.ack\",\"params\":{\"ids\":[%llu]}}\n", r->number);
    else
        buf_addf(&r->client->out,
                 "{\"jsonrpc\":\"2.0\",\"method\":\"rpc.cancel\",\"params\":{\"id\":%llu}}\n", r->number);
    request_free(r);
}

void stream_client_heard(struct stream_request *r)
{
    buf_addf(&r->client->out,
             "{\"jsonrpc\":\"2.0\",\"method\":\"rpc.ack\",\"params\":{\"subscription\":%llu,\"seq\":%llu}}\n",
             r->number, r->events);
}

struct buf *stream_client_out(struct stream_client *c)
{
    return &c->out;
}

/* ---- in ---- */

static struct stream_request *find(const struct stream_client *c, struct span id)
{
    struct stream_request *r = c->first;
    unsigned long long number = strtoull(id.s, NULL, 10);
    while (r && (r->number != number || r->answered))
        r = r->next;
    return r;
}

/* One that a call here has subscribed to; there are no others. */
static void take_event(const struct stream_client *c, struct span params)
{
    static const char *const names[] = {"subscription", "seq", "event"};
    struct span found[3];
    int count[3];
    json_members(params, names, 3, found, count);
    struct stream_request *r = found[0].s && found[1].s && found[2].s ? find(c, found[0]) : NULL;
    if (!r)
        return;
    r->events = strtoull(found[1].s, NULL, 10);
    c->owner.event(c->owner.arg, r->work, found[2]);
}

/* A line is an answer, or a notification, of which the hello and events alone matter. */
static int take_line(struct stream_client *c, struct span line)
{
    static const char *const names[] = {"id", "method", "params"};
    struct span found[3];
    int count[3];
    if (json_check(line, NULL) < 0 || json_kind(line) != JSON_OBJECT)
        return -1;
    json_members(line, names, 3, found, count);
    if (!c->greeted) {
        if (!found[1].s || !json_string_is(found[1], "rpc.hello") || !found[2].s)
            return -1;
        c->greeted = true;
        c->owner.hello(c->owner.arg, found[2]);
        return 0;
    }
    if (c->owner.event && found[1].s && found[2].s && json_string_is(found[1], "rpc.event"))
        take_event(c, found[2]);
    struct stream_request *r = found[0].s && !found[1].s ? find(c, found[0]) : NULL;
    if (!r)
        return 0; /* of one that was cancelled */
    struct buf response BUF_AUTO = BUF_INIT;
    put_with(&response, line, found[0], (struct span){r->id, strlen(r->id)});
    r->answered = true;
    c->owner.answer(c->owner.arg, r->work, span_of(&response));
    return 0;
}

/* The bytes of the message that begins there; 0: it isn't all there yet; -1: it is none. */
static long take_message(struct stream_client *c, size_t from)
{
    const char *begin = c->in.data + from;
    if (c->in.len > from && *begin == MUX_MARK && c->owner.frame && c->greeted) {
        struct mux_frame f;
        long n = mux_frame_read(begin, c->in.len - from, &f);
        if (n > 0)
            c->owner.frame(c->owner.arg, &f);
        return n;
    }
    size_t looked = c->looked > from ? c->looked : from;
    const char *end = memchr(c->in.data + looked, '\n', c->in.len - looked);
    c->looked = c->in.len;
    if (!end)
        return 0;
    c->looked = from;
    return take_line(c, (struct span){begin, (size_t)(end - begin)}) < 0 ? -1 : end + 1 - begin;
}

int stream_client_feed(struct stream_client *c, const char *data, size_t n)
{
    size_t from = 0;
    long took;
    if (c->in.len + n > memory_share(&c->share, c->in.len + n, STREAM_ANSWER_MAX) ||
        buf_add(&c->in, data, n) < 0)
        return -1;
    while (c->in.len > from && (took = take_message(c, from)) != 0) {
        if (took < 0)
            return -1;
        from += (size_t)took;
    }
    if (c->greeted) /* one who never says who he is isn't alive */
        c->silent = 0;
    buf_consume(&c->in, from);
    if (c->in.cap > STREAM_IN_KEPT)
        buf_shrink(&c->in);
    c->looked -= c->looked > from ? from : c->looked;
    return 0;
}

bool stream_client_tick(struct stream_client *c)
{
    buf_shrink(&c->in);
    buf_adds(&c->out, "{\"jsonrpc\":\"2.0\",\"method\":\"rpc.alive\"}\n");
    return ++c->silent < SILENT_TICKS;
}
