/* The sessions of clients by HTTP: who serves each, its streams, and when it ends. */
#ifndef APPLETS_MCP_SERVE_SERVE_SESSION_H
#define APPLETS_MCP_SERVE_SERVE_SESSION_H

#include "serve_http.h"
#include "serve.h"

#define SWEEP_MS 5000
#define SWEEP_SOON_MS 20 /* while something is ending */

struct proxy_conn;

struct http_session {
    struct http_session *next;
    char id[33]; /* "": those without one */
    struct client client;
    struct serve own, *serve; /* its own, or that of all */
    struct relay *relay;      /* instead of it, in a target */
    char *target;             /* NULL: where we are */
    struct sse *streams;
    unsigned numbers;
    long long seen_ms;
    char fields[64];
    bool ending, over;
    struct http *http;
};

struct http {
    const struct serve_http_options *options;
    const struct serve_offer *offer;
    struct loop *loop;
    struct proxy_server *servers[SERVE_DOORS_MAX];
    struct tls_server *tls; /* NULL: none is spoken */
    struct tls_door *tls_doors[SERVE_DOORS_MAX];
    struct http_session *sessions; /* the last is the one for those without */
    struct http_session *nobody;   /* NULL: of each target another one */
    size_t n;
    struct loop_source *sweep, *patience;
    bool ending;
};

/* For a named one, or for all requests to a target that name none. NULL: with err. */
struct http_session *http_session_new(struct http *h, const char *target, bool named, struct err *err);

/* `id` "": that for requests without one. */
struct http_session *http_session_find(const struct http *h, const char *target, const char *id);

/* A stream for what is asked by that connection. */
struct sse *http_session_stream(struct http_session *x, struct proxy_conn *conn);

/* What it made ends with it, unless it is that of all. */
void http_session_end(struct http_session *x);
void http_session_free(struct http *h, struct http_session *x);

/* Forgets what nobody comes for any more; a timer's. The loop stops with the last session of a server that
 * ends. */
void http_sessions_sweep(void *arg);

#endif
