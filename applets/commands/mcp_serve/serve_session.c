#include "serve_session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "applet.h"
#include "io.h"
#include "loop.h"
#include "mem.h"
#include "random.h"
#include "serve_events.h"
#include "serve_relay.h"

static void nothing(struct serve *s)
{
    (void)s;
}

static void over(struct serve *s, int status)
{
    struct http_session *x = (struct http_session *)(void *)((char *)s - offsetof(struct http_session, own));
    (void)status;
    x->over = true;
    loop_timer_set(x->http->sweep, SWEEP_SOON_MS);
}

static const struct serve_owner owner = {
    .stalled = nothing, .deaf = nothing, .advanced = serve_advanced, .over = over, .said = sse_said};

static void relay_over(void *arg)
{
    struct http_session *x = arg;
    x->ending = x->over = true;
    loop_timer_set(x->http->sweep, SWEEP_SOON_MS);
}

static int begin_serving(struct http_session *x, const char *target, bool named, struct err *err)
{
    struct http *h = x->http;
    if (target) {
        const struct relay_owner to = {sse_said, relay_over, x};
        x->target = mem_strdup(target);
        x->relay = relay_new(h->loop, h->options->far, target, !named, &to, err);
        return x->relay ? 0 : -1;
    }
    x->own = (struct serve){.owner = &owner, .offer = h->offer, .loop = h->loop};
    serve_begin(&x->own);
    x->serve = named && h->options->share ? h->nobody->serve : &x->own;
    return 0;
}

struct http_session *http_session_new(struct http *h, const char *target, bool named, struct err *err)
{
    unsigned char bytes[16];
    struct http_session *x = mem_zalloc(sizeof *x);
    if (named && random_bytes(bytes, sizeof bytes) < 0) {
        err_set(err, ERR_INTERNAL, "no random numbers can be had");
        free(x);
        return NULL;
    }
    for (size_t i = 0; named && i < sizeof bytes; i++)
        snprintf(x->id + 2 * i, 3, "%02x", bytes[i]);
    if (named)
        snprintf(x->fields, sizeof x->fields, "Mcp-Session-Id: %s\r\n", x->id);
    x->http = h;
    x->client = (struct client){.level = LEVEL_WARNING, .many = !named};
    if (begin_serving(x, target, named, err) < 0) {
        free(x->target);
        free(x);
        return NULL;
    }
    x->seen_ms = now_ms();
    x->next = h->sessions;
    h->sessions = x;
    h->n++;
    return x;
}

struct http_session *http_session_find(const struct http *h, const char *target, const char *id)
{
    struct http_session *x = h->sessions;
    while (x && (x->ending || strcmp(x->id, id) != 0 || (target && strcmp(x->target, target) != 0)))
        x = x->next;
    return x;
}

static bool has_calls(const struct http_session *x)
{
    if (x->relay)
        return relay_is_busy(x->relay);
    const struct call *c = x->serve->calls.first;
    while (c && c->origin.client != &x->client)
        c = c->next;
    return c != NULL;
}

void http_session_end(struct http_session *x)
{
    if (x->ending)
        return;
    x->ending = true;
    if (x->relay) {
        relay_end(x->relay);
    } else if (x->serve == &x->own) {
        serve_finish(x->serve);
    } else {
        for (struct call *c = x->serve->calls.first, *next; c; c = next) {
            next = c->next;
            if (c->origin.client == &x->client && c->tool)
                serve_cancel(c);
        }
        x->over = true;
    }
    for (struct sse *st = x->streams; st; st = st->next)
        sse_hang_up(st);
    loop_timer_set(x->http->sweep, SWEEP_SOON_MS);
}

void http_session_free(struct http *h, struct http_session *x)
{
    struct http_session **at = &h->sessions;
    while (*at != x)
        at = &(*at)->next;
    *at = x->next;
    if (!x->relay)
        serve_release(&x->own);
    relay_free(x->relay);
    free(x->target);
    while (x->streams)
        sse_free(&x->streams, x->streams);
    h->n--;
    free(x);
}

static bool is_used(const struct http_session *x)
{
    for (const struct sse *st = x->streams; st; st = st->next)
        if (st->conn)
            return true;
    return has_calls(x);
}

/* Forgets what nobody can come for any more, or soon enough. */
static void forget_streams(struct http_session *x)
{
    size_t n = 0;
    for (struct sse *st = x->streams, *next; st; st = next) {
        next = st->next;
        if (st->conn || !(st->ended || st->listens))
            continue;
        if (st->done || st->listens || x->client.many || ++n > SSE_KEPT ||
            now_ms() - st->since_ms > SSE_KEPT_MS)
            sse_free(&x->streams, st);
    }
}

void http_sessions_sweep(void *arg)
{
    struct http *h = arg;
    long long now = now_ms();
    bool soon = false;
    for (struct http_session *x = h->sessions, *next; x; x = next) {
        next = x->next;
        forget_streams(x);
        for (struct sse *st = x->streams; st; st = st->next)
            sse_beat(st);
        if (x->over && !has_calls(x)) {
            http_session_free(h, x);
            continue;
        }
        if (is_used(x))
            x->seen_ms = now;
        else if (!x->ending && x != h->nobody && now - x->seen_ms >= h->options->idle_ms)
            http_session_end(x);
        soon = soon || x->ending;
    }
    if (h->ending && !h->sessions)
        loop_stop(h->loop, EXIT_OK);
    loop_timer_set(h->sweep, soon ? SWEEP_SOON_MS : SWEEP_MS);
}

static void gone(struct sse *st, void *arg)
{
    struct http_session *x = arg;
    if (!x->client.many) /* it may come again for the rest */
        return;
    if (x->relay) {
        relay_cancel(x->relay, st);
        return;
    }
    for (struct call *c = x->serve->calls.first, *next; c; c = next) {
        next = c->next;
        if (c->origin.stream == st && c->tool)
            serve_cancel(c);
        else if (c->origin.stream == st && !c->task)
            serve_subscription_result(c), serve_call_end(c);
    }
}

struct sse *http_session_stream(struct http_session *x, struct proxy_conn *conn)
{
    forget_streams(x);
    struct sse *st = sse_new(&x->streams, conn, gone, x);
    st->number = ++x->numbers;
    st->fields = x->fields;
    st->strict = x->client.many;
    st->primes = x->client.revision >= REVISION_2025_11_25;
    return st;
}
