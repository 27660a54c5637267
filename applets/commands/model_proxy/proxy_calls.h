/* What the proxy answers to which request. */
#ifndef APPLETS_MODEL_PROXY_PROXY_CALLS_H
#define APPLETS_MODEL_PROXY_PROXY_CALLS_H

#include "loop.h"
#include "proxy_dialect.h"
#include "proxy_http.h"
#include "proxy_service.h"

struct proxy {
    struct loop *loop;
    struct service *service;
    /* The host failed a call, or answered nonsense: it wants the sample to fail, not its agent to try again.
     * The process is to end with this reason. */
    void (*failed)(void *arg, const char *reason);
    void *arg;
    bool headers;       /* the host is told the fields of requests */
    bool headers_known; /* and has taken them once */
};

/* The handler of a proxy_server, `arg` a struct proxy (proxy_routes.c). */
void proxy_handle(void *arg, struct proxy_conn *conn, const struct proxy_request *request);

/* Requests to /mcp/SERVER (proxy_mcp.c). */
void proxy_mcp(struct proxy *proxy, struct proxy_conn *conn, const struct proxy_request *request);

/* A call of a model (proxy_calls.c). */
struct proxy_route {
    const char *path;
    const char *method; /* of the service */
    enum dialect dialect;
    const char *wants; /* a member that the body has to have; NULL: none */
};
/* Has the host answer. `model`: of GOOGLE, whose clients name it in the path, as JSON; `stream` likewise. */
void proxy_call(struct proxy *proxy, struct proxy_conn *conn, const struct proxy_route *route,
                const struct proxy_request *request, struct span model, bool stream);

/* An error of the dialect. */
void proxy_refuse(struct proxy_conn *conn, enum dialect dialect, int status, const char *message);

#define JSON_FIELDS "Content-Type: application/json\r\n"

#endif
