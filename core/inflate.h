/* Unpacks what is compressed by "deflate" (RFC 1951), in the form of gzip (RFC 1952) or zlib (RFC 1950), or
 * as it is.
 *
 * Of gzip one member; the length at its end is checked, sums are not: what is unpacked here is looked at
 * anyway. */
#ifndef CORE_INFLATE_H
#define CORE_INFLATE_H

#include <stdbool.h>

#include "buf.h"

enum { INFLATE_BROKEN = -1, INFLATE_TOO_MUCH = -2 };

/* Appends to `out`, never beyond its max. 0, or one of the above. */
int inflate(const char *data, size_t n, bool gzip, struct buf *out);

#endif
