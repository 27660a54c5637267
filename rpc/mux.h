/* Byte streams side by side over one connection, each with a window of its own, between the lines of stream.h
 * (docs/protocol.md, "Streams").
 *
 * It knows neither descriptors nor clocks: frames go in by mux_take and come out in a buffer that it was
 * given. One side opens streams, the other one takes them; both then send bytes, as many as the other one has
 * granted, and each ends its direction, or resets the whole. What was received counts against the window
 * until the owner says that it is gone (mux_consumed), so that memory is bounded by the windows, and one that
 * isn't read holds up no other. */
#ifndef RPC_MUX_H
#define RPC_MUX_H

#include <stdbool.h>
#include <stdint.h>

#include "buf.h"
#include "json.h"

/* ---- frames: a head of ten bytes and so many more ---- */

#define MUX_MARK '\2'           /* the first byte of each: no line begins with it */
#define MUX_HEAD 10             /* mark, kind, stream (32 bits, the high byte first), length (the same) */
#define MUX_DATA_MAX 65536      /* bytes behind the head */
#define MUX_OPEN_MAX (1u << 21) /* the same of MUX_OPEN: as long as a command line may be */
#define MUX_WINDOW_MIN 65536    /* that may be sent at first */
#define MUX_WINDOW_MAX (1u << 20)
#define MUX_STREAMS_MAX 1024

enum mux_kind {
    MUX_OPEN = 'o',   /* JSON: what the stream is to lead to */
    MUX_DATA = 'd',   /* bytes */
    MUX_END = 'e',    /* none: no more will be sent */
    MUX_RESET = 'r',  /* text: why it has ended in both directions */
    MUX_WINDOW = 'w', /* 32 bits: so many bytes more may be sent */
};

struct mux_frame {
    enum mux_kind kind;
    uint32_t stream;
    struct span data;
};

/* Numbers of 32 bits, in heads and in what streams carry: four bytes, the high one first. */
uint32_t mux_number(const char *bytes);
void mux_put_number(char *bytes, uint32_t n);

/* The frame that the bytes begin with: its length, 0 where more bytes are needed, -1 where they begin none.
 */
long mux_frame_read(const char *bytes, size_t n, struct mux_frame *f);
/* Appends one; n is at most MUX_DATA_MAX, or MUX_OPEN_MAX. */
void mux_frame_put(struct buf *out, enum mux_kind kind, uint32_t stream, const void *data, size_t n);

/* ---- streams ---- */

struct mux;

struct mux_stream {
    void *work; /* the owner's own; NULL at first in one that the peer has opened */
    struct mux *mux;
    struct mux_stream *next, **link;
    uint32_t id;
    size_t room;    /* bytes that may be sent */
    size_t granted; /* bytes that may come */
    size_t held;    /* that have come and are not consumed */
    size_t window;
    bool sent_end, got_end;
};

/* A stream is freed after `closed`, and by mux_reset. */
struct mux_owner {
    /* The peer has opened one; NULL: none is taken. The owner may reset it. */
    void (*opened)(void *arg, struct mux_stream *s, struct span params);
    void (*received)(void *arg, struct mux_stream *s, struct span data);
    void (*ended)(void *arg, struct mux_stream *s);    /* the peer sends no more */
    void (*has_room)(void *arg, struct mux_stream *s); /* more than before */
    /* It is over: in both directions by itself (why.s NULL), or by the peer's reset, or with the connection.
     */
    void (*closed)(void *arg, struct mux_stream *s, struct span why);
    void *arg;
};

/* out: the connection's, which outlives it. */
struct mux *mux_new(const struct mux_owner *owner, struct buf *out);
void mux_free(struct mux *m); /* all streams close */

/* Takes a frame from the peer. What breaks the rules resets the stream that it is about. */
void mux_take(struct mux *m, const struct mux_frame *f);

/* params: at most MUX_OPEN_MAX bytes. */
struct mux_stream *mux_open(struct mux *m, struct span params, void *work);
/* n is at most s->room, and the direction has not ended. */
void mux_send(struct mux_stream *s, const void *data, size_t n);
void mux_consumed(struct mux_stream *s, size_t n);
void mux_end(struct mux_stream *s);                    /* may close it */
void mux_reset(struct mux_stream *s, const char *why); /* `closed` isn't called */
void mux_abort(struct mux_stream *s, const char *why); /* it is */

size_t mux_count(const struct mux *m);
struct mux_stream *mux_streams(const struct mux *m); /* ->next */

#endif
