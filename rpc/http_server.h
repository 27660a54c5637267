/* HTTP/1.1 (RFC 9112) on a listening Unix socket: POST / with a JSON-RPC body.
 *
 * Strict: request line, header syntax, Content-Length or chunked but not both, limits on head and body,
 * Expect: 100-continue, keep-alive and pipelining (answers in order). Only peers that are root or of this
 * process's own uid get past accept, and none whose pid reads 0 (another container's). Slow, silent,
 * half-closed and vanishing clients cost a descriptor and what they sent. A client that closes its side, or
 * breaks, before its answer has gone out abandons the call (half-close included: that is what a killed client
 * looks like). After an answer, a clean end of file or a next request means delivered, and so does
 * that it was read to its last byte; anything else (ECONNRESET: it was not) means not. */
#ifndef RPC_HTTP_SERVER_H
#define RPC_HTTP_SERVER_H

#include "err.h"
#include "loop.h"
#include "rpc.h"

struct http_server;

struct http_server *http_server_new(struct loop *loop, int listen_fd, rpc_find_fn find, void *find_ctx);
void http_server_free(struct http_server *server); /* closes the clients and the listening socket */

/* Sends what is queued and then calls done: for a process that answers its own shutdown. New connections are
 * no longer taken. Bounded by limit_ms. */
#define HTTP_DRAIN_MS 500
void http_server_drain(struct http_server *server, int limit_ms, void (*done)(void *arg), void *arg);

/* True while a request is being read or answered, or it isn't known whether an answer has arrived: what is
 * lost with the process then is more than a request that nobody has taken. */
bool http_server_busy(const struct http_server *server);

/* Calls of clients that have not been answered yet. */
size_t http_server_pending(const struct http_server *server);

/* What has happened so far. Bytes are those of bodies. */
struct http_counts {
    unsigned long long connections, strangers; /* strangers: peers that were turned away */
    unsigned long long requests, refused;      /* refused: no HTTP request of ours */
    unsigned long long bytes_in, bytes_out;
    size_t open; /* connections there are */
};
struct http_counts http_server_counts(const struct http_server *server);

#endif
