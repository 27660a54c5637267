/* One client of an HTTP server: from its first byte to its last, one request at a time.
 *
 * Owned by the server's list until it is closed; it closes itself when the client has gone. Everything may
 * happen from inside its callbacks, the end of the server included: a connection that is on the stack is
 * freed when it is left. */
#ifndef RPC_HTTP_CONN_H
#define RPC_HTTP_CONN_H

#include <stdbool.h>

#include "http_frame.h"
#include "http_server.h"
#include "loop.h"
#include "rpc.h"

struct http_conn;

/* What a connection has of its server. */
struct http_host {
    struct loop *loop;
    rpc_find_fn find;
    void *find_ctx;
    void (*changed)(void *arg); /* output was sent, or a connection has closed */
    void *arg;
    struct http_frame *conns; /* each the frame of a struct http_conn */
    struct http_counts counts;
};

/* Takes fd (non-blocking). */
void http_conn_new(struct http_host *host, int fd);

/* Closes it: an open call is abandoned, an answer that is not known to have arrived has not. */
void http_conn_close(struct http_conn *conn);

/* Of the host's list; NULL: there is none. */
struct http_conn *http_conn_first(const struct http_host *host);
struct http_conn *http_conn_next(const struct http_conn *conn);
bool http_conn_calling(const struct http_conn *conn); /* its call has not been answered yet */
bool http_conn_busy(const struct http_conn *conn);    /* it has something that would be lost with us */
bool http_conn_writing(const struct http_conn *conn); /* its answer has not been sent to the end */

#endif
