/* Many calls over one stream of lines: JSON-RPC 2.0, a message a line, both ways (docs/protocol.md, "One
 * connection").
 *
 * This is the side that is asked. It knows neither descriptors nor clocks: bytes go in by stream_feed and
 * come out in stream_out; whoever has the descriptors takes them from there, and ticks. Requests are answered
 * as they finish. An answer that was `kept` is delivered once the peer has acknowledged it (rpc.ack), and is
 * given back when it cancels instead or when the stream ends: what becomes of it then is its owner's matter.
 * Before its answer a call may bring any number of events, each of which is acknowledged for itself.
 *
 * Memory is bounded: by the longest line, the bytes of all open requests, the number of calls that are open
 * or not acknowledged, and by the output, since no input is taken up while that is full. */
#ifndef RPC_STREAM_H
#define RPC_STREAM_H

#include <stdbool.h>
#include <stddef.h>

#include "buf.h"
#include "json.h"
#include "mux.h"

#define STREAM_LINE_MAX (128u << 20)
#define STREAM_HELD_MAX (2 * (size_t)STREAM_LINE_MAX) /* bytes of all requests that are open */
#define STREAM_OUT_FULL (1u << 20)
#define STREAM_TICK_MS 7000
#define STREAM_IN_KEPT (1u << 19) /* bytes for input that stay from one to the next, until a tick */

struct stream;

/* One request or notification, and its answer until that is acknowledged. */
struct stream_call {
    struct span text; /* of the request, until it is answered */
    struct span id;   /* in the text; s == NULL: a notification */
    void *work;       /* the owner's own; NULL at first */
    struct stream *stream;
    struct stream_call *next, **link;
    struct stream_batch *batch; /* NULL: it came alone */
    char *memory;               /* of the text; of an answered call of its id alone */
    unsigned long long events;  /* that it has brought */
    bool answered;
};

/* Neither may end the stream. */
struct stream_owner {
    /* A call has come: stream_answer answers it, from inside or later. */
    void (*begin)(void *arg, struct stream_call *call);
    /* It is over, and is freed: once for every call that was begun. Not answered: nobody waits any more.
     * `delivered`: its answer was acknowledged, or wasn't kept. */
    void (*end)(void *arg, struct stream_call *call, bool delivered);
    void *arg;
    /* The last event of the call, which isn't answered yet, has arrived. NULL: nobody has to know. */
    void (*heard)(void *arg, struct stream_call *call);
    /* A frame of a byte stream (mux.h) has come between two lines. NULL: there are none, and it is a bad
     * line. */
    void (*frame)(void *arg, const struct mux_frame *f);
    /* An acknowledgement that wants an answer is begun as a call too, after what it is about has ended: the
     * owner answers it (not `kept`) when those who have to know do. */
    bool confirms;
};

/* Says hello. open_max: calls that may be open or not acknowledged. */
struct stream *stream_new(const struct stream_owner *owner, size_t open_max);
/* All calls end, not delivered. */
void stream_free(struct stream *s);

/* Takes bytes from the peer, any number at a time. While the output is full they only wait: stream_go_on
 * takes them up when there is room again. What is no line of ours is answered with an error. */
void stream_feed(struct stream *s, const char *data, size_t n);
void stream_go_on(struct stream *s);

/* The response, one JSON value on one line; of a notification it doesn't matter. `kept`: it has to be
 * acknowledged. */
void stream_answer(struct stream_call *call, struct span response, bool kept);

/* Something that the call, which has an id and isn't answered yet, has to tell: one JSON value on one line.
 */
void stream_event(struct stream_call *call, struct span event);

/* What is to be sent to the peer; what was sent is consumed by whoever did. */
struct buf *stream_out(struct stream *s);
bool stream_is_full(const struct stream *s);
size_t stream_open(const struct stream *s); /* calls that aren't answered */
/* All calls there are, the oldest first; ->next. */
struct stream_call *stream_calls(const struct stream *s);

/* Each STREAM_TICK_MS: says that we are alive where nothing else was said. False: the peer has said before
 * that it would do so too, and hasn't for four ticks. */
bool stream_tick(struct stream *s);

#endif
