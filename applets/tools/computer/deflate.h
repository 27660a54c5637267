/* Packs bytes by "deflate" (RFC 1951). */
#ifndef APPLETS_COMPUTER_DEFLATE_H
#define APPLETS_COMPUTER_DEFLATE_H

#include "buf.h"

/* Appends the n bytes, packed, as the whole of a stream. */
void deflate(struct buf *out, const unsigned char *data, size_t n);

#endif
