/* Many calls over one stream of lines, from the side that asks (stream.h is the other one).
 *
 * It gives every request an id of its own, so that requests of several callers can go over one stream, and
 * the answer the id that the request had. It knows neither descriptors nor clocks. */
#ifndef RPC_STREAM_CLIENT_H
#define RPC_STREAM_CLIENT_H

#include <stdbool.h>
#include <stddef.h>

#include "buf.h"
#include "json.h"
#include "mux.h"

#define STREAM_ANSWER_MAX (512u << 20)

struct stream_client;
struct stream_request;

struct stream_client_owner {
    void (*hello)(void *arg, struct span params); /* once, before all else */
    /* The answer to a request, with the id that it had. It isn't over until it is settled. */
    void (*answer)(void *arg, void *work, struct span response);
    /* Something that a request has to tell before its answer; the next one comes when stream_client_heard
     * says that it has arrived. NULL: nobody asks for any. */
    void (*event)(void *arg, void *work, struct span event);
    void (*frame)(void *arg, const struct mux_frame *f); /* of a byte stream (mux.h); NULL: there are none */
    void *arg;
};

struct stream_client *stream_client_new(const struct stream_client_owner *owner);
void stream_client_free(struct stream_client *c); /* with all requests; nothing is called */

/* Sends a request: one checked JSON object on one line, `id` the text of its id in it (s == NULL: a
 * notification; then NULL is returned, and `work` doesn't matter). */
struct stream_request *stream_client_send(struct stream_client *c, struct span text, struct span id,
                                          void *work);
void stream_client_heard(struct stream_request *r);
/* The request is over: its answer was delivered, or wasn't, or nobody waits for it any more. Frees it. */
void stream_client_settle(struct stream_request *r, bool delivered);

/* Takes bytes from the peer. -1: it is none of ours. */
int stream_client_feed(struct stream_client *c, const char *data, size_t n);
/* What is to be sent; what was sent is consumed by whoever did. */
struct buf *stream_client_out(struct stream_client *c);

/* Each STREAM_TICK_MS: sends a sign of life. False: nothing was heard for four ticks. */
bool stream_client_tick(struct stream_client *c);

#endif
