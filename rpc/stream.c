#include "stream.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "instance.h"
#include "mem.h"
#include "memory_share.h"
#include "rpc.h"
#include "version.h"

#define SILENT_TICKS 4

/* The answers of one batch, which go out together. */
struct stream_batch {
    struct buf answers;
    size_t left; /* calls that are to be answered, and one more while it is being taken in */
};

struct stream {
    struct stream_owner owner;
    size_t open_max, open, n_calls; /* open: not answered */
    size_t held;                    /* bytes of the open ones */
    struct memory_share share;      /* of the memory, for those and for the line that comes */
    struct stream_call *first, **last;
    struct buf in, out;
    size_t looked; /* bytes of the input in which there is no newline */
    bool skipping; /* the rest of a line that was too long */
    bool said;     /* something since the last tick */
    bool alive;    /* the peer says so while it has nothing else to say */
    int silent;    /* ticks since it said anything */
};

/* ---- out ---- */

static void put_line(struct stream *s, struct span text)
{
    buf_reserve(&s->out, text.n + 1);
    buf_add(&s->out, text.s, text.n);
    buf_addc(&s->out, '\n');
    s->said = true;
}

static void put_alive(struct stream *s)
{
    static const char text[] = "{\"jsonrpc\":\"2.0\",\"method\":\"rpc.alive\"}";
    put_line(s, (struct span){text, sizeof text - 1});
}

static void put_hello(struct stream *s)
{
    struct buf text BUF_AUTO = BUF_INIT;
    char instance[INSTANCE_MAX];
    instance_text(instance);
    buf_addf(&text,
             "{\"jsonrpc\":\"2.0\",\"method\":\"rpc.hello\",\"params\":{\"version\":\"%s\",\"build\":\"%s\","
             "\"instance\":\"%s\",\"pid\":%d,"
             "\"features\":[\"ack\",\"alive\",\"batch\",\"cancel\",\"events\"%s],"
             "\"limits\":{\"line\":%u,\"open\":%zu,\"batch\":%d},\"alive_s\":%d}}",
             toolbox_version, toolbox_build_id, instance, (int)getpid(), s->owner.frame ? ",\"streams\"" : "",
             STREAM_LINE_MAX, s->open_max, RPC_BATCH_MAX, STREAM_TICK_MS / 1000);
    put_line(s, span_of(&text));
}

static void batch_leave(struct stream *s, struct stream_batch *b)
{
    if (--b->left > 0)
        return;
    if (b->answers.len > 0) {
        buf_addc(&b->answers, ']');
        put_line(s, span_of(&b->answers));
    }
    buf_release(&b->answers);
    free(b);
}

static void put_response(struct stream *s, struct stream_batch *b, struct span response)
{
    if (!b) {
        put_line(s, response);
        return;
    }
    buf_addc(&b->answers, b->answers.len > 0 ? ',' : '[');
    buf_add(&b->answers, response.s, response.n);
}

/* What the stream itself has to say to a request; a notification (without an id) gets nothing. */
static void reply(struct stream *s, struct stream_batch *b, struct span id, const char *result,
                  const struct err *err)
{
    struct buf text BUF_AUTO = BUF_INIT;
    if (!id.s)
        return;
    if (err)
        rpc_put_error(&text, id, err);
    else
        rpc_put_result(&text, id, (struct span){result, strlen(result)});
    put_response(s, b, span_of(&text));
}

/* ---- calls ---- */

static bool is_id(const struct stream_call *call, struct span id)
{
    return call->id.s && call->id.n == id.n && memcmp(call->id.s, id.s, id.n) == 0;
}

static struct stream_call *find(const struct stream *s, struct span id, bool answered)
{
    struct stream_call *call = s->first;
    while (call && !(call->answered == answered && is_id(call, id)))
        call = call->next;
    return call;
}

static void no_longer_open(struct stream_call *call)
{
    call->stream->open--;
    call->stream->held -= call->text.n;
}

static void call_end(struct stream_call *call, bool delivered)
{
    struct stream *s = call->stream;
    if (!call->answered)
        no_longer_open(call);
    *call->link = call->next;
    *(call->next ? &call->next->link : &s->last) = call->link;
    s->n_calls--;
    s->owner.end(s->owner.arg, call, delivered);
    free(call->memory);
    free(call);
}

static void call_begin(struct stream *s, struct stream_batch *b, struct span text,
                       const struct rpc_request *r)
{
    struct stream_call *call = mem_zalloc(sizeof *call);
    call->memory = mem_dup(text.s, text.n);
    call->text = (struct span){call->memory, text.n};
    if (r->id.s)
        call->id = (struct span){call->memory + (r->id.s - text.s), r->id.n};
    call->stream = s;
    call->batch = b;
    call->link = s->last;
    *s->last = call;
    s->last = &call->next;
    s->n_calls++;
    s->open++;
    s->held += text.n;
    if (b)
        b->left++;
    s->owner.begin(s->owner.arg, call);
}

void stream_answer(struct stream_call *call, struct span response, bool kept)
{
    struct stream *s = call->stream;
    struct stream_batch *b = call->batch;
    no_longer_open(call);
    call->answered = true;
    if (call->id.s)
        put_response(s, b, response);
    if (call->id.s && kept) {
        char *id = mem_dup(call->id.s, call->id.n);
        free(call->memory);
        call->memory = id;
        call->id.s = id;
        call->text = (struct span){0};
        call->batch = NULL;
    } else {
        call_end(call, true);
    }
    if (b)
        batch_leave(s, b);
}

void stream_event(struct stream_call *call, struct span event)
{
    struct buf text BUF_AUTO = BUF_INIT;
    buf_addf(&text,
             "{\"jsonrpc\":\"2.0\",\"method\":\"rpc.event\",\"params\":{\"subscription\":%.*s,\"seq\":%llu,"
             "\"event\":",
             (int)call->id.n, call->id.s, ++call->events);
    buf_add(&text, event.s, event.n);
    buf_adds(&text, "}}");
    put_line(call->stream, span_of(&text));
}

/* ---- what is the stream's own ---- */

static bool param(const struct rpc_request *r, const char *key, enum json_kind kind, struct span *value)
{
    return r->params.s && json_member(r->params, key, value, NULL) &&
           (kind == JSON_NULL || json_kind(*value) == kind);
}

/* {"subscription": …, "seq": …}: an event has arrived; of those that came before nobody asks. */
static const char *acknowledge_event(struct stream *s, const struct rpc_request *r, struct span id)
{
    struct span seq;
    if (!param(r, "seq", JSON_NUMBER, &seq))
        return NULL;
    struct stream_call *call = find(s, id, false);
    if (call && call->events > 0 && strtoull(seq.s, NULL, 10) == call->events && s->owner.heard)
        s->owner.heard(s->owner.arg, call);
    return "null";
}

/* {"ids": […]}: what was answered has arrived. */
static const char *acknowledge(struct stream *s, const struct rpc_request *r)
{
    struct span ids, id;
    if (param(r, "subscription", JSON_NULL, &id))
        return acknowledge_event(s, r, id);
    if (!param(r, "ids", JSON_ARRAY, &ids))
        return NULL;
    for (size_t at = 0; json_element(ids, &at, &id);) {
        struct stream_call *call = find(s, id, true);
        if (call)
            call_end(call, true);
    }
    return "null";
}

/* {"id": …}: nobody waits for that answer any more, or it counts as not delivered. */
static const char *cancel(struct stream *s, const struct rpc_request *r)
{
    struct span id;
    struct err err;
    if (!param(r, "id", JSON_NULL, &id))
        return NULL;
    struct stream_call *call = find(s, id, false);
    if (!call)
        call = find(s, id, true);
    if (!call)
        return "false";
    struct stream_batch *b = call->batch;
    if (!call->answered) {
        err_set(&err, ERR_TOOL, "cancelled");
        reply(s, b, call->id, NULL, &err);
    }
    call_end(call, false);
    if (b)
        batch_leave(s, b);
    return "true";
}

static const char *alive(struct stream *s, const struct rpc_request *r)
{
    (void)r;
    s->alive = true;
    return "null";
}

static const struct {
    const char *method, *wants;
    const char *(*run)(struct stream *s, const struct rpc_request *r); /* the result; NULL: bad params */
} own_methods[] = {{"rpc.ack", "ids: must be an array of ids (or subscription and seq given)", acknowledge},
                   {"rpc.cancel", "id: is missing", cancel},
                   {"rpc.alive", "", alive}};

static bool take_own(struct stream *s, struct stream_batch *b, const struct rpc_request *r)
{
    struct err err;
    for (size_t i = 0; i < sizeof own_methods / sizeof *own_methods; i++) {
        if (strcmp(own_methods[i].method, r->method) != 0)
            continue;
        const char *result = own_methods[i].run(s, r);
        if (!result)
            err_set(&err, ERR_PARAMS, "Invalid parameters: %s", own_methods[i].wants);
        if (result && r->id.s && s->owner.confirms && own_methods[i].run == acknowledge)
            return false;
        reply(s, b, r->id, result, result ? NULL : &err);
        return true;
    }
    return false;
}

/* ---- in ---- */

static int check_room(struct stream *s, size_t n, const struct rpc_request *r, struct err *err)
{
    if (r->id.s && find(s, r->id, false))
        return err_set(err, ERR_INVALID_REQUEST, "Invalid request: a call with this id is still open");
    if (s->n_calls >= s->open_max)
        return err_set(err, ERR_TOOL,
                       "%zu calls are open or not acknowledged: wait for answers, and acknowledge them with "
                       "rpc.ack",
                       s->n_calls);
    if (s->held + n > memory_share(&s->share, s->held + n, STREAM_HELD_MAX))
        return err_set(err, ERR_TOOL,
                       "the requests of the open calls are too long together: wait for answers");
    return 0;
}

static void take_request(struct stream *s, struct stream_batch *b, struct span text)
{
    struct rpc_request r;
    struct err err;
    int failed = rpc_request_parse(&r, text, &err);
    if (failed < 0 && err.code == ERR_INVALID_REQUEST && !r.id.s)
        r.id = (struct span){"null", 4};
    if (failed == 0 && take_own(s, b, &r))
        return;
    if (failed == 0)
        failed = check_room(s, text.n, &r, &err);
    if (failed < 0)
        reply(s, b, r.id, NULL, &err);
    else
        call_begin(s, b, text, &r);
}

static void refuse(struct stream *s, const struct err *err)
{
    reply(s, NULL, (struct span){"null", 4}, NULL, err);
}

static void take_batch(struct stream *s, struct span array)
{
    struct span element;
    struct err err;
    size_t n = 0;
    for (size_t at = 0; n <= RPC_BATCH_MAX && json_element(array, &at, &element);)
        n++;
    if (n == 0 || n > RPC_BATCH_MAX) {
        err_set(&err, ERR_INVALID_REQUEST, "Invalid request: a batch has from 1 to %d requests",
                RPC_BATCH_MAX);
        refuse(s, &err);
        return;
    }
    struct stream_batch *b = mem_zalloc(sizeof *b);
    buf_init(&b->answers, BUF_NO_MAX);
    b->left = 1;
    for (size_t at = 0; json_element(array, &at, &element);)
        take_request(s, b, element);
    batch_leave(s, b);
}

static void take_line(struct stream *s, struct span line)
{
    struct err err;
    if (strspn(line.s, " \t\r") >= line.n)
        return;
    if (json_check(line, &err) < 0)
        refuse(s, &err);
    else if (json_kind(line) == JSON_ARRAY)
        take_batch(s, line);
    else
        take_request(s, NULL, line);
}

/* The end of the line that begins there; -1: it isn't there yet. */
static long line_end(struct stream *s, size_t from)
{
    size_t begin = s->looked > from ? s->looked : from;
    const char *end = s->in.len > begin ? memchr(s->in.data + begin, '\n', s->in.len - begin) : NULL;
    s->looked = end ? 0 : s->in.len;
    return end ? end - s->in.data : -1;
}

static size_t longest_line(struct stream *s)
{
    size_t share = memory_share(&s->share, s->in.len + s->held, STREAM_HELD_MAX);
    return share < STREAM_LINE_MAX ? share : STREAM_LINE_MAX;
}

static void refuse_long_line(struct stream *s)
{
    struct err err;
    err_set(&err, ERR_INVALID_REQUEST, "Invalid request: a line is longer than %zu bytes", longest_line(s));
    refuse(s, &err);
    s->skipping = true;
}

/* The bytes that the frame takes which begins there; 0: it isn't all there yet; -1: none begins there. */
static long take_frame(struct stream *s, size_t from)
{
    struct mux_frame f;
    if (!s->owner.frame || s->skipping || s->in.len == from)
        return -1;
    long n = mux_frame_read(s->in.data + from, s->in.len - from, &f);
    if (n > 0)
        s->owner.frame(s->owner.arg, &f);
    return n;
}

/* The same of a line. */
static long take_next_line(struct stream *s, size_t from)
{
    long end = line_end(s, from);
    if (end < 0)
        return 0;
    s->in.data[end] = '\0';
    if (!s->skipping)
        take_line(s, (struct span){s->in.data + from, (size_t)end - from});
    s->skipping = false;
    return end + 1 - (long)from;
}

void stream_go_on(struct stream *s)
{
    size_t from = 0;
    while (!stream_is_full(s)) {
        long n = take_frame(s, from);
        if (n < 0)
            n = take_next_line(s, from);
        if (n == 0)
            break;
        from += (size_t)n;
    }
    buf_consume(&s->in, from);
    s->looked -= s->looked > from ? from : s->looked;
    if (s->in.len > longest_line(s) && s->looked == s->in.len && !s->skipping)
        refuse_long_line(s);
    if (s->skipping && s->looked == s->in.len)
        buf_truncate(&s->in, s->looked = 0);
    if (s->in.cap > STREAM_IN_KEPT)
        buf_shrink(&s->in);
}

void stream_feed(struct stream *s, const char *data, size_t n)
{
    s->silent = 0;
    buf_add(&s->in, data, n);
    stream_go_on(s);
}

/* ---- the whole ---- */

struct stream *stream_new(const struct stream_owner *owner, size_t open_max)
{
    struct stream *s = mem_zalloc(sizeof *s);
    s->owner = *owner;
    s->open_max = open_max;
    s->last = &s->first;
    buf_init(&s->in, BUF_NO_MAX);
    buf_init(&s->out, BUF_NO_MAX);
    put_hello(s);
    return s;
}

void stream_free(struct stream *s)
{
    while (s->first) {
        struct stream_call *call = s->first;
        /* What has ended is in the list no more. NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
        struct stream_batch *b = call->batch;
        call_end(call, false);
        if (b)
            batch_leave(s, b);
    }
    buf_release(&s->in);
    buf_release(&s->out);
    free(s);
}

struct buf *stream_out(struct stream *s)
{
    return &s->out;
}

bool stream_is_full(const struct stream *s)
{
    return s->out.len >= STREAM_OUT_FULL;
}

size_t stream_open(const struct stream *s)
{
    return s->open;
}

struct stream_call *stream_calls(const struct stream *s)
{
    return s->first;
}

bool stream_tick(struct stream *s)
{
    if (!s->said)
        put_alive(s);
    buf_shrink(&s->in);
    s->said = false;
    return ++s->silent < SILENT_TICKS || !s->alive;
}
