/* One HTTP request and its answer from a client's side, without ever blocking: for client_call, which waits
 * with poll, and for client_start, which waits on a loop.
 *
 * The last byte of the answer stays in the socket (client.h says why). Of a short answer all of it does: it
 * was only looked at. */
#ifndef RPC_EXCHANGE_H
#define RPC_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>

#include "buf.h"
#include "err.h"
#include "json.h"

/* EXCHANGE_TURN: another one's long answer is being read. */
enum exchange_want { EXCHANGE_READ, EXCHANGE_WRITE, EXCHANGE_TURN, EXCHANGE_DONE, EXCHANGE_FAILED };

struct exchange {
    int fd;
    struct span request; /* not copied */
    struct buf *answer;  /* the body, once done; before, also the head */
    char head[128];      /* of the request */
    size_t head_len, sent;
    size_t length; /* of the answer's body */
    bool in_body;
    bool cut; /* the peer has closed before the request was out */
    struct exchange *
        *turn; /* of those that share it only one reads a long answer at a time; NULL: any does */
};

void exchange_init(struct exchange *x, int fd, struct span request, struct buf *answer);

/* Goes as far as it can: what to wait for, or that it is over. Errors are ERR_INTERNAL, and
 * ERR_TOOL for an answer for which there is not the memory; when the peer has
 * closed without an answer errno is ECONNRESET if it cannot have read the whole request, EPIPE if it may
 * have. (The kernel resets a connection that is closed with bytes unread.) */
enum exchange_want exchange_run(struct exchange *x, struct err *err);

/* Sends what can be sent. True: that was all, and there is nothing to wait for but the answer. */
bool exchange_send(struct exchange *x);

/* Takes what was left in the socket. */
void exchange_take_rest(int fd);

#endif
