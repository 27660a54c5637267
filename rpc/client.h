/* The other side of http_server.h: one JSON-RPC request over a connected Unix socket.
 *
 * Delivery: the last byte of the answer's body stays unread in the socket until the caller says that the
 * answer has reached its reader; closing before that resets the connection, and the server knows that its
 * answer was lost. */
#ifndef RPC_CLIENT_H
#define RPC_CLIENT_H

#include <poll.h>
#include <stdbool.h>

#include "buf.h"
#include "err.h"
#include "json.h"
#include "loop.h"
#include "rpc.h"

/* Blocking: sends the request and reads the whole answer into `answer` (body only, without a final newline;
 * empty for a notification). timeout_ms < 0: none. -1 with ERR_INTERNAL when no answer could be had; errno is
 * then ECONNRESET when the peer has closed without having read the whole request (it can be sent again to
 * another), EPIPE when it may have. The connection stays open. */
int client_call(int fd, struct span request, struct buf *answer, int timeout_ms, struct err *err);

/* What else is looked at while client_call waits: for whom the answer is. `gone` is asked whenever one of the
 * descriptors
 * (-1: none) has something to say, which stands in its revents, and each tick_ms (-1: not by time). It may
 * change them. Where it says yes, the call ends with ECONNABORTED. The watch stays where it is; NULL: there
 * is none. */
struct client_watch {
    struct pollfd fds[2];
    int tick_ms;
    bool (*gone)(struct client_watch *watch);
};
void client_watch(struct client_watch *watch);

/* Says that the last answer on fd was delivered (reads its last byte). The caller then closes fd. */
void client_delivered(int fd);

/* Result or error of a response object. 0: *result is its text (in the response's memory); -1: err is the
 * error that it carries (or ERR_INTERNAL when it is no response). */
int client_result(struct span response, struct span *result, struct err *err);

/* On a loop: takes fd (connected) and sends the request, which has to stay where it is until `done`. `done`
 * is called once, with the answer (a span valid during the call) or an error (and errno as of client_call).
 */
struct client;
struct exchange;
typedef void (*client_done_fn)(void *arg, struct span answer, const struct err *err);
struct client *client_start(struct loop *loop, int fd, struct span request, int timeout_ms,
                            client_done_fn done, void *arg);
/* Of all clients with the same `turn` (which is NULL at first) one at a time reads an answer that is longer
 * than a few KB; the others wait, and go on when client_pause(…, false) says so. */
void client_take_turns(struct client *client, struct exchange **turn);
/* Until it goes on no more is read of an answer than has been. */
void client_pause(struct client *client, bool paused);
/* After done, or to give up before: delivered or not as above; closes the connection and frees. */
void client_end(struct client *client, bool delivered);
/* The same of one whose answer was delivered, but for the connection, which is the caller's: another request
 * may go over it. */
int client_leave(struct client *client);

/* Passes a call on to another process (fd: connected to it, taken) and its answer, delivery and abandonment
 * back. Where that process ended without having read it, `untaken` (may be NULL) gets the
 * call as it was. */
void rpc_forward(struct rpc_call *call, struct loop *loop, int fd,
                 void (*untaken)(struct rpc_call *call, void *arg), void *arg);

#endif
