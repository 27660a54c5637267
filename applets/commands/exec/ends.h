/* What the byte streams of a connection lead to, on the side of the target: programs, sockets. */
#ifndef EXEC_ENDS_H
#define EXEC_ENDS_H

#include <stdbool.h>
#include <sys/resource.h>

#include "err.h"
#include "loop.h"
#include "mux.h"

/* One kind of them. None of these may block; each may reset its stream, but `closed`. */
struct end_kind {
    const char *name; /* the member of the params by which it is asked for; the list ends with NULL */
    /* Begins one: stream->work is its own from then on. -1 with an error that the other side is told. */
    int (*begin)(struct mux_stream *s, struct span params, struct err *err);
    void (*received)(struct mux_stream *s, struct span data);
    void (*ended)(struct mux_stream *s);
    void (*wait)(struct mux_stream *s);   /* there is room for more now, or none */
    void (*closed)(struct mux_stream *s); /* frees its own */
};

/* What all of them stand on. */
struct ends {
    struct loop *loop;
    struct rlimit descriptors; /* that those are given which are started */
    void (*said)(void);        /* after something was said that nobody asked for just now */
};
extern struct ends ends;

/* Bytes that may be said on a stream now. */
size_t ends_room(const struct mux_stream *s);

/* Before that there are none. out: the connection's. */
void ends_begin(struct loop *loop, const struct rlimit *descriptors, struct buf *out, void (*said)(void));
void ends_frame(void *arg, const struct mux_frame *f); /* for the owner of a stream of lines (rpc/stream.h) */
/* Nothing more is said while the output is full. */
void ends_pause(bool full);
bool ends_are_open(void);
void ends_finish(void);

#endif
