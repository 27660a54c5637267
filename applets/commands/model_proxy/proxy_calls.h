/* What the proxy answers to which request. */
#ifndef APPLETS_MODEL_PROXY_PROXY_CALLS_H
#define APPLETS_MODEL_PROXY_PROXY_CALLS_H

#include "loop.h"
#include "proxy_dialect.h"
#include "proxy_http.h"
#include "proxy_service.h"

/* A request as it is looked up. */
struct proxy_asked {
    struct proxy_conn *conn;
    const struct proxy_request *r;
    char *path;       /* with one slash for several, and none at the end */
    const char *what; /* behind the version, or versions, of which there may be none */
    enum dialect dialect;
    bool posts;
    struct buf body; /* another body than what was sent, where there is one */
};

struct background;

struct proxy {
    struct loop *loop;
    struct proxy_source source; /* who answers */
    /* Who sees every request first, but those that ask for signs of life, and may change it, or answer it:
     * true. NULL: nobody. */
    bool (*first)(void *arg, struct proxy_asked *asked, struct proxy_request *request);
    void *first_arg;
    /* Who is told of an answer that was made in the background; NULL: nobody. */
    void (*made)(void *arg, struct span answer);
    /* The host failed a call, or answered nonsense: it wants the sample to fail, not its agent to try again.
     * The process is to end with this reason. */
    void (*failed)(void *arg, const char *reason);
    void *arg;
    struct loop_source *rest;      /* due when nothing was asked for a while */
    struct background *background; /* the newest first (proxy_background.h) */
    bool headers;                  /* the host is told the fields of requests */
    bool headers_known;            /* and has taken them once */
};

/* The handler of a proxy_server, `arg` a struct proxy (proxy_routes.c). */
void proxy_handle(void *arg, struct proxy_conn *conn, const struct proxy_request *request);

/* What is behind the version of a path, or versions, of which there may be none. *beta where one is no v1. */
const char *proxy_behind_versions(const char *path, bool *beta);

/* Requests to /mcp/SERVER (proxy_mcp.c). */
void proxy_mcp(struct proxy *proxy, struct proxy_conn *conn, const struct proxy_request *request);

/* A call of a model (proxy_calls.c). */
struct proxy_route {
    const char *path;
    const char *method; /* of the service */
    enum dialect dialect;
    const char *wants; /* a member that the body has to have; NULL: none */
};
/* Has the host answer. `model`: of GOOGLE, whose clients name it in the path, as JSON; `form` likewise. */
enum answer_form { WHOLE, STREAM, ARRAY };
void proxy_call(struct proxy *proxy, struct proxy_conn *conn, const struct proxy_route *route,
                const struct proxy_request *request, struct span model, enum answer_form form);

/* An error of the dialect, with more lines of the head. */
void proxy_refuse_with(struct proxy_conn *conn, enum dialect dialect, int status, const char *fields,
                       const char *message);
/* An error of the dialect. */
void proxy_refuse(struct proxy_conn *conn, enum dialect dialect, int status, const char *message);

#define JSON_FIELDS "Content-Type: application/json\r\n"
#define LINES_FIELDS "Content-Type: application/x-ndjson\r\n"
#define STREAM_FIELDS "Content-Type: text/event-stream; charset=utf-8\r\n"

#endif
