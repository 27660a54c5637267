/* Bytes first in, first out, in chunks: however much there is, nothing is moved when some of it is taken, and
 * what was taken is given back at once. Owned by whoever embeds it: = FIFO_INIT and fifo_release. */
#ifndef CORE_FIFO_H
#define CORE_FIFO_H

#include <stddef.h>

#include "buf.h"

struct fifo_chunk;

struct fifo {
    struct fifo_chunk *first, *last;
    size_t len; /* bytes in it */
};
#define FIFO_INIT                                                                                            \
    {                                                                                                        \
        0                                                                                                    \
    }

void fifo_release(struct fifo *f); /* frees; it is usable again */

void fifo_add(struct fifo *f, const void *data, size_t n);

/* Reads once from fd, at most `max` bytes, into it: what read returns, with errno. */
ptrdiff_t fifo_read(struct fifo *f, int fd, size_t max);

/* Writes once to fd what lies together at its front, and drops what was taken: what write returns, with
 * errno. The fifo must not be empty. */
ptrdiff_t fifo_write(struct fifo *f, int fd);

/* Appends a copy of the first n bytes, or of all where there are fewer, to out; they stay in it. */
void fifo_peek(const struct fifo *f, size_t n, struct buf *out);
void fifo_drop(struct fifo *f, size_t n);

/* Writes all of it to fd, and keeps it. 0, or -1 with errno. */
int fifo_copy(const struct fifo *f, int fd);

#endif
