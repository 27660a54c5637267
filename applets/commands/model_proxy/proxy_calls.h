/* What the proxy answers to which request. */
#ifndef APPLETS_MODEL_PROXY_PROXY_CALLS_H
#define APPLETS_MODEL_PROXY_PROXY_CALLS_H

#include "loop.h"
#include "proxy_http.h"
#include "proxy_service.h"

struct proxy {
    struct loop *loop;
    struct service *service;
    /* The host failed a call, or answered nonsense: it wants the sample to fail, not its agent to try again.
     * The process is to end with this reason. */
    void (*failed)(void *arg, const char *reason);
    void *arg;
};

/* The handler of a proxy_server, `arg` a struct proxy. */
void proxy_handle(void *arg, struct proxy_conn *conn, const struct proxy_request *request);

/* Requests to /mcp/SERVER (proxy_mcp.c). */
void proxy_mcp(struct proxy *proxy, struct proxy_conn *conn, const struct proxy_request *request);

/* Appends a copy of an object with this member, in the place of any that it has. */
void proxy_put_with(struct buf *out, struct span object, const char *key, const char *value);

#define JSON_FIELDS "Content-Type: application/json\r\n"

#endif
