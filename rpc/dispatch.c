#include "rpc.h"

#include <stdlib.h>
#include <string.h>

#include "io.h"
#include "log.h"
#include "mem.h"
#include "params.h"

#ifndef TOOLBOX_GUEST
void (*rpc_watch)(const struct rpc_done *done);
struct rpc_peer rpc_peer;
#endif

#ifdef TOOLBOX_GUEST
#define IN_BUILD " (this is the small build; the whole program has more: toolbox inject TARGET, from outside)"
#else
#define IN_BUILD
#endif

struct rpc_call {
    struct rpc_message *message;
    struct rpc_call *next;
    struct span text;
    struct span id; /* s == NULL: a notification */
    bool answered;
    char *turn;         /* NULL: it waits for no other's delivery */
    long long began_ms; /* where calls are logged */
    size_t begins;      /* its answer in the message's */
    void (*on_abandon)(void *arg);
    void *abandon_arg;
    void (*on_delivered)(void *arg, bool delivered);
    void *delivered_arg;
};

struct rpc_message {
    char *text;
    struct span array; /* of a batch: s != NULL */
    size_t at;         /* how far it has been walked */
    rpc_find_fn find;
    void *find_ctx;
    struct rpc_sink sink;
    struct buf answer;
#ifndef TOOLBOX_GUEST
    struct rpc_peer peer;
#endif
    struct rpc_call *first, *last; /* all calls so far: kept for their hooks, and to see a second answer */
    bool running;                  /* a handler may be on the stack */
    bool answered;                 /* the sink was called */
    bool gone;                     /* nobody waits for the answer any more */
};

static bool is_watched(void)
{
#ifndef TOOLBOX_GUEST
    if (rpc_watch)
        return true;
#endif
    return log_wanted(LOG_DEBUG);
}

static void message_free(struct rpc_message *m)
{
    for (struct rpc_call *call = m->first; call;) {
        struct rpc_call *next = call->next;
        free(call->turn);
        free(call);
        call = next;
    }
    buf_release(&m->answer);
    free(m->text);
    free(m);
}

static void tell_call(struct rpc_call *call, bool delivered)
{
    void (*fn)(void *arg, bool delivered) = call->on_delivered;
    call->on_delivered = NULL;
    if (fn)
        fn(call->delivered_arg, delivered && call->id.s);
}

static void tell_delivered(struct rpc_message *m, bool delivered)
{
    for (struct rpc_call *call = m->first; call; call = call->next)
        tell_call(call, delivered);
}

static bool open_call(const struct rpc_message *m)
{
    return m->last && !m->last->answered;
}

/* In front of each response: what makes an array of those of a batch. */
static void separate(struct rpc_message *m)
{
    if (m->array.s)
        buf_addc(&m->answer, m->answer.len > 0 ? ',' : '[');
}

static void put_failure(struct rpc_message *m, struct span id, const struct err *err)
{
    separate(m);
    rpc_put_error(&m->answer, id, err);
}

static void start_call(struct rpc_message *m, struct span text, const struct rpc_request *r, rpc_handler run,
                       void *ctx)
{
    struct rpc_call *call = mem_zalloc(sizeof *call);
    call->message = m;
    call->text = text;
    call->id = r->id;
    call->began_ms = is_watched() ? now_ms() : 0;
    call->begins = m->answer.len;
    *(m->last ? &m->last->next : &m->first) = call;
    m->last = call;
    run(call, r->params, ctx);
}

static void start_request(struct rpc_message *m, struct span text)
{
    struct rpc_request r;
    struct err err;
    void *ctx = NULL;
    if (rpc_request_parse(&r, text, &err) < 0) {
        if (r.id.s || err.code == ERR_INVALID_REQUEST) /* a notification's parameters are nobody's concern */
            put_failure(m, r.id, &err);
        return;
    }
    rpc_handler run = r.method[0] ? m->find(m->find_ctx, r.method, &ctx) : NULL;
    if (run) {
        start_call(m, text, &r, run, ctx);
    } else if (r.id.s) {
        err_set(&err, ERR_METHOD_NOT_FOUND, "Method not found: %.*s" IN_BUILD,
                (int)(r.method_text.n < 200 ? r.method_text.n : 200), r.method_text.s);
        put_failure(m, r.id, &err);
    }
}

static void finish(struct rpc_message *m)
{
    if (m->gone) {
        tell_delivered(m, false);
        message_free(m);
        return;
    }
    if (m->array.s && m->answer.len > 0)
        buf_addc(&m->answer, ']');
    m->answered = true;
    m->sink.answer(m->sink.arg, &m->answer); /* the message may be gone behind this */
}

/* Starts requests of a batch until one stays open. Never nests: a handler that answers at once comes back to
 * here. */
static void take_up(struct rpc_message *m)
{
    struct span text;
    if (m->running)
        return;
    m->running = true;
    while (!m->gone && !open_call(m) && m->array.s && json_element(m->array, &m->at, &text))
        start_request(m, text);
    m->running = false;
    if (!open_call(m))
        finish(m);
}

/* ---- taking a message in ---- */

static void refuse(struct rpc_message *m, const struct err *err)
{
    put_failure(m, (struct span){NULL, 0}, err);
}

static void start_batch(struct rpc_message *m, struct span array)
{
    struct span element;
    struct err err;
    size_t n = 0;
    for (size_t at = 0; n <= RPC_BATCH_MAX && json_element(array, &at, &element);)
        n++;
    if (n > 0 && n <= RPC_BATCH_MAX) {
        m->array = array;
        return;
    }
    if (n == 0)
        err_set(&err, ERR_INVALID_REQUEST, "Invalid request: the batch is empty");
    else
        err_set(&err, ERR_INVALID_REQUEST, "Invalid request: more than %d requests in a batch",
                RPC_BATCH_MAX);
    refuse(m, &err);
}

static void start(struct rpc_message *m, struct span text)
{
    struct err err;
    if (json_check(text, &err) < 0)
        refuse(m, &err);
    else if (json_kind(text) == JSON_ARRAY)
        start_batch(m, text);
    else
        start_request(m, text);
}

struct rpc_message *rpc_take(struct span text, rpc_find_fn find, void *find_ctx, struct rpc_sink sink)
{
    return rpc_take_own(mem_dup(text.s, text.n), text.n, find, find_ctx, sink);
}

struct rpc_message *rpc_take_own(char *text, size_t n, rpc_find_fn find, void *find_ctx, struct rpc_sink sink)
{
    struct rpc_message *m = mem_zalloc(sizeof *m);
    m->text = text;
    m->find = find;
    m->find_ctx = find_ctx;
    m->sink = sink;
#ifndef TOOLBOX_GUEST
    m->peer = rpc_peer;
#endif
    buf_init(&m->answer, BUF_NO_MAX);
    m->running = true;
    start(m, (struct span){m->text, n});
    m->running = false;
    take_up(m);
    if (!m->answered)
        return m;
    for (struct rpc_call *call = m->first; call; call = call->next)
        if (call->on_delivered)
            return m;
    message_free(m);
    return NULL;
}

void rpc_message_delivered(struct rpc_message *m, bool delivered)
{
    tell_delivered(m, delivered);
    message_free(m);
}

void rpc_message_abandon(struct rpc_message *m)
{
    struct rpc_call *call = open_call(m) ? m->last : NULL;
    m->gone = true;
    if (call && !call->on_abandon)
        return; /* runs on; its answer ends the message */
    if (call) {
        call->answered = true; /* an answer from inside the hook, or later, is ignored */
        call->on_delivered = NULL;
        call->on_abandon(call->abandon_arg);
    }
    if (!m->running)
        finish(m);
}

/* ---- a call's side ---- */

/* Where to write the answer; NULL: nobody is to get it. */
static struct buf *answer_to(struct rpc_call *call)
{
    struct rpc_message *m = call->message;
    if (!call->id.s || m->gone || call->answered)
        return NULL;
    separate(m);
    return &m->answer;
}

static void tell_watcher(const struct rpc_call *call)
{
#ifndef TOOLBOX_GUEST
    const struct buf *answer = &call->message->answer;
    size_t from = call->begins + (call->message->array.s && answer->len > call->begins);
    const struct rpc_done done = {.request = call->text,
                                  .response = {buf_str(answer) + from, answer->len - from},
                                  .ms = now_ms() - call->began_ms,
                                  .peer = call->message->peer};
    if (rpc_watch)
        rpc_watch(&done);
#else
    (void)call;
#endif
}

/* Of a request its method alone, which is one of ours. */
static void note(const struct rpc_call *call, int code)
{
    struct rpc_request r;
    if (!log_wanted(LOG_DEBUG) || rpc_request_parse(&r, call->text, NULL) < 0)
        return;
    log_line(LOG_DEBUG, "%s: %d after %lld ms", r.method, code, now_ms() - call->began_ms);
}

static void answered(struct rpc_call *call, int code)
{
    if (call->answered)
        return; /* a fault of the handler's: the first answer stands */
    note(call, code);
    tell_watcher(call);
    call->answered = true;
    take_up(call->message);
}

void rpc_result(struct rpc_call *call, struct span result)
{
    struct buf *out = answer_to(call);
    if (out)
        rpc_put_result(out, call->id, result);
    answered(call, 0);
}

void rpc_result_take(struct rpc_call *call, struct buf *result, size_t gap)
{
    struct buf *out = answer_to(call);
    if (out && out->len > 0) { /* in a batch */
        rpc_put_result(out, call->id, (struct span){result->data + gap, result->len - gap});
    } else if (out) {
        buf_release(out);
        *out = *result;
        buf_init(result, BUF_NO_MAX);
        rpc_wrap_result(out, gap, call->id);
    }
    answered(call, 0);
}

void rpc_result_string(struct rpc_call *call, const char *s, size_t n)
{
    struct buf text BUF_AUTO = BUF_INIT;
    json_put_string(&text, s, n);
    rpc_result(call, span_of(&text));
}

void rpc_null(struct rpc_call *call)
{
    rpc_result(call, (struct span){"null", 4});
}

void rpc_fail(struct rpc_call *call, const struct err *err)
{
    struct buf *out = answer_to(call);
    if (out)
        rpc_put_error(out, call->id, err);
    answered(call, err->code);
}

bool rpc_unpack(struct rpc_call *call, const struct params_table *table, struct span params, void *into)
{
    struct err err;
    if (params_unpack(table, params, into, &err) == 0)
        return true;
    rpc_fail(call, &err);
    return false;
}

void rpc_fail_kind(struct rpc_call *call, const struct err *err, const char *kind)
{
    struct buf *out = answer_to(call);
    if (out)
        rpc_put_error_kind(out, call->id, err, kind);
    answered(call, err->code);
}

void rpc_response(struct rpc_call *call, struct span response)
{
    struct buf *out = answer_to(call);
    if (out)
        buf_add(out, response.s, response.n);
    answered(call, 0);
}

void rpc_on_abandon(struct rpc_call *call, void (*fn)(void *arg), void *arg)
{
    call->on_abandon = fn;
    call->abandon_arg = arg;
}

void rpc_on_delivered(struct rpc_call *call, void (*fn)(void *arg, bool delivered), void *arg)
{
    call->on_delivered = fn;
    call->delivered_arg = arg;
}

void rpc_in_turn(struct rpc_call *call, const char *turn)
{
    if (!call->turn)
        call->turn = mem_strdup(turn);
    for (struct rpc_call *c = call->message->first; c != call; c = c->next)
        if (c->turn && strcmp(c->turn, turn) == 0)
            tell_call(c, true);
}

struct span rpc_request_text(const struct rpc_call *call)
{
    return call->text;
}

rpc_handler rpc_find(const struct rpc_method *table, const char *method)
{
    for (const struct rpc_method *m = table; m && m->name; m++)
        if (strcmp(m->name, method) == 0)
            return m->run;
    return NULL;
}
