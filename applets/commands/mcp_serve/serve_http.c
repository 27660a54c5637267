#include "serve_http.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "applet.h"
#include "io.h"
#include "mem.h"
#include "proc.h"
#include "relocate.h"
#include "rpc.h"
#include "serve_doors.h"
#include "serve_events.h"
#include "serve_head.h"
#include "serve_relay.h"
#include "serve_session.h"
#include "serve_tls.h"

#define SESSIONS_MAX 4096
#define FAR_SESSIONS_MAX 512 /* each has processes of its own */
#define END_MS 6000          /* for all sessions, when the server ends */
#define REAP_MS 1000

static const char NAME[] = "mcp serve";

/* ---- requests ---- */

static void refuse(struct proxy_conn *conn, int status, const char *fields, const struct err *err,
                   struct span id)
{
    struct buf text BUF_AUTO = BUF_INIT;
    rpc_put_error(&text, id.s ? id : (struct span){"null", 4}, err);
    char *all MEM_AUTO = mem_printf("Content-Type: application/json\r\n%s", fields);
    proxy_answer(conn, status, all, span_of(&text));
}

static void refuse_with(struct proxy_conn *conn, int status, const char *fields, const char *why)
{
    struct err err;
    err_set(&err, status == 404 ? -32001 : ERR_INVALID_REQUEST, "%s", why);
    refuse(conn, status, fields, &err, (struct span){0});
}

/* One that begins. NULL: refused. */
static struct http_session *session_begin(struct http *h, struct proxy_conn *conn, const char *target,
                                          bool named)
{
    struct err err;
    struct http_session *x = NULL;
    if (h->n >= (target ? FAR_SESSIONS_MAX : SESSIONS_MAX))
        err_set(&err, ERR_INTERNAL, "Too many sessions are open");
    else
        x = http_session_new(h, target, named, &err);
    if (!x)
        refuse(conn, 503, "Retry-After: 5\r\n", &err, (struct span){0});
    return x;
}

/* NULL: refused. */
static struct http_session *session_for(struct http *h, struct proxy_conn *conn, const char *target,
                                        const struct http_parser *head, const struct body_look *look)
{
    const char *id = http_field(head, "mcp-session-id");
    struct http_session *x = NULL;
    if (*id && !look->version.s) {
        x = http_session_find(h, target, id);
        if (!x)
            refuse_with(conn, 404, "", "Session not found: it has ended; begin another one with initialize");
    } else if (look->initialize) {
        x = session_begin(h, conn, target, true);
    } else if (look->version.s || look->asks || !look->method.s) {
        x = http_session_find(h, target, ""); /* as of 2026-07-28, or told what is wrong with it */
        if (!x)
            x = session_begin(h, conn, target, false);
    } else {
        refuse_with(conn, 400, "", "Bad request: Mcp-Session-Id is missing; begin a session with initialize");
    }
    if (x)
        x->seen_ms = now_ms();
    return x;
}

/* A message on its way to whoever serves the session. */
static void pass_on(struct http_session *x, struct sse *st, const struct body_look *look, struct span body)
{
    if (!x->relay) {
        serve_message(x->serve, &x->client, st, body);
        return;
    }
    if (look->initialize) { /* what is agreed on is told by the answer, which is to come */
        x->client.revision = REVISION_2025_11_25;
        for (enum revision r = REVISION_NONE + 1; r < REVISION_2025_11_25; r++)
            if (json_string_is(look->wanted, revision_names[r]))
                x->client.revision = r;
    }
    relay_message(x->relay, st, body);
}

static void take_post(struct http *h, struct proxy_conn *conn, const char *target,
                      const struct proxy_request *r)
{
    struct body_look look;
    struct err err;
    if (r->body.n > SERVE_LINE_MAX) {
        refuse_with(conn, 413, "", "A message has at most 64 MiB");
        return;
    }
    if (r->body.n == 0 || strspn(r->body.s, " \t\r\n") == r->body.n) {
        refuse_with(conn, 400, "", "Bad request: there is no message");
        return;
    }
    serve_look(r->body, &look);
    if (serve_check_head(r->head, &look, &err) < 0) {
        refuse(conn, 400, "", &err, look.id);
        return;
    }
    struct http_session *x = session_for(h, conn, target, r->head, &look);
    if (!x)
        return;
    struct sse *st = http_session_stream(x, conn);
    bool events = look.later && serve_accepts(r->head, "text/event-stream");
    pass_on(x, st, &look, r->body);
    if (!look.asks || st->ended || !events) {
        st->ended = st->ended || !look.asks;
        sse_answer(st);
    } else {
        sse_begin(st, 0);
    }
    if (look.initialize && !x->client.revision)
        http_session_end(x);
}

static struct http_session *session_named(const struct http *h, const char *target,
                                          const struct proxy_request *r)
{
    const char *id = http_field(r->head, "mcp-session-id");
    return *id ? http_session_find(h, target, id) : NULL;
}

/* What came behind an event that a client has got, or whatever comes. */
static void take_get(struct http *h, struct proxy_conn *conn, const char *target,
                     const struct proxy_request *r)
{
    struct http_session *x = session_named(h, target, r);
    const char *last = http_field(r->head, "last-event-id");
    char *end;
    unsigned number = (unsigned)strtoul(last, &end, 10), after = 0;
    if (!x) {
        bool none = !*http_field(r->head, "mcp-session-id");
        refuse_with(conn, none ? 400 : 404, "",
                    none ? "Bad request: Mcp-Session-Id is missing" : "Session not found: it has ended");
        return;
    }
    if (!serve_accepts(r->head, "text/event-stream")) {
        refuse_with(conn, 406, "", "Not acceptable: Accept has to name text/event-stream");
        return;
    }
    x->seen_ms = now_ms();
    struct sse *st = *end == '-' ? x->streams : NULL;
    while (st && (st->number != number || st->listens))
        st = st->next;
    if (st) {
        after = (unsigned)strtoul(end + 1, NULL, 10);
        sse_take_up(st, conn, after);
        return;
    }
    st = http_session_stream(x, conn);
    st->listens = true;
    sse_begin(st, 0);
}

static void take_delete(struct http *h, struct proxy_conn *conn, const char *target,
                        const struct proxy_request *r)
{
    struct http_session *x = session_named(h, target, r);
    if (!x) {
        refuse_with(conn, 404, "", "Session not found: it has ended");
        return;
    }
    http_session_end(x);
    proxy_answer(conn, 204, "", (struct span){"", 0});
}

/* Whether something is served at a path: here (*target NULL), or in a target. */
static bool is_endpoint(const struct http *h, const char *path, char **target)
{
    static const char mcp[] = "/mcp";
    size_t n = sizeof mcp - 1;
    if (strncmp(path, mcp, n) != 0 || (path[n] && path[n] != '/'))
        return false;
    if (!h->options->far)
        return !path[n] || !path[n + 1];
    *target = far_target(h->options->far, path + n);
    return *target != NULL;
}

static void take(void *arg, struct proxy_conn *conn, const struct proxy_request *r)
{
    struct http *h = arg;
    struct buf why BUF_AUTO = BUF_INIT;
    bool reads = strcmp(r->method, "GET") == 0 || strcmp(r->method, "HEAD") == 0;
    if (reads && strcmp(r->path, "/healthz") == 0) {
        proxy_answer(conn, h->ending ? 503 : 200, "Content-Type: text/plain\r\n",
                     h->ending ? (struct span){"ending\n", 7} : (struct span){"ok\n", 3});
        return;
    }
    char *target MEM_AUTO = NULL;
    if (!is_endpoint(h, r->path, &target)) {
        refuse_with(conn, 404, "",
                    h->options->far
                        ? "Nothing is here: the endpoint is /mcp/TARGET, of a target that is served"
                        : "Nothing is here: the endpoint is /mcp");
        return;
    }
    int status = serve_may_ask(r->head, h->options->token, h->options->tls.ca != NULL, &why);
    if (status != 0)
        refuse_with(conn, status, status == 401 ? "WWW-Authenticate: Bearer\r\n" : "", buf_str(&why));
    else if (strcmp(r->method, "POST") == 0)
        take_post(h, conn, target, r);
    else if (strcmp(r->method, "GET") == 0)
        take_get(h, conn, target, r);
    else if (strcmp(r->method, "DELETE") == 0)
        take_delete(h, conn, target, r);
    else
        refuse_with(conn, 405, "Allow: POST, GET, DELETE\r\n",
                    "Method not allowed: POST, GET and DELETE are");
}

/* ---- begin and end ---- */

static void out_of_patience(void *arg)
{
    struct http *h = arg;
    loop_stop(h->loop, EXIT_OK);
}

static void on_signal(void *arg, int signal)
{
    struct http *h = arg;
    (void)signal;
    if (h->ending)
        return;
    h->ending = true;
    h->patience = loop_timer(h->loop, END_MS, out_of_patience, h);
    for (struct http_session *x = h->sessions; x; x = x->next)
        http_session_end(x);
    loop_timer_set(h->sweep, SWEEP_SOON_MS);
}

int serve_http(const struct serve_http_options *o, const struct serve_offer *offer)
{
    struct err err;
    struct http h = {.options = o, .offer = offer, .loop = loop_new(&err)};
    int fds[SERVE_DOORS_MAX];
    if (!h.loop)
        return applet_failed(NAME, "%s", err.msg);
    if (code_unpack(CODE_http, &err) < 0)
        return applet_failed(NAME, "%s", err.msg);
    if (o->tls.cert && (code_unpack(CODE_tls, &err) < 0 || !(h.tls = tls_server_new(&o->tls, &err))))
        return applet_failed(NAME, "%s", err.msg);
    if (doors_open(o, fds) < 0)
        return EXIT_FAILED;
    h.sweep = loop_timer(h.loop, SWEEP_MS, http_sessions_sweep, &h);
    if (!o->far)
        h.nobody = http_session_new(&h, NULL, false, &err);
    for (size_t i = 0; i < o->n; i++) {
        h.servers[i] = proxy_server_new(h.loop, door_has_tls(o, i) ? -1 : fds[i], take, &h);
        if (door_has_tls(o, i))
            h.tls_doors[i] = tls_door_new(h.loop, fds[i], h.tls, h.servers[i]);
    }
    loop_on_signal(h.loop, on_signal, &h);
    doors_tell(o, fds); /* only now: whoever reads it may end us at once */
    int status = loop_run(h.loop);
    for (size_t i = 0; i < o->n; i++) {
        proxy_server_free(h.servers[i]);
        tls_door_free(h.tls_doors[i]);
    }
    if (h.tls)
        tls_server_free(h.tls);
    doors_close(o);
    while (h.sessions)
        http_session_free(&h, h.sessions);
    proc_reap(REAP_MS);
    return status;
}
