#ifndef RPC_SPAN_H
#define RPC_SPAN_H

#include <stdbool.h>
#include <stddef.h>

#include "buf.h"

/* A stretch of text that somebody else owns. s == NULL: not there. */
struct span {
    const char *s;
    size_t n;
};

static inline struct span span_of(const struct buf *b)
{
    return (struct span){b->data ? b->data : "", b->len};
}
bool span_is(struct span span, const char *text);

#endif
