/* Unpacks what is compressed by zstd (RFC 8878): any number of frames, without a dictionary. */
#ifndef CORE_UNZSTD_H
#define CORE_UNZSTD_H

#include "buf.h"
#include "inflate.h"

/* As inflate(): appends to `out`, never beyond its max. 0, INFLATE_BROKEN (also where this program may not
 * add code to its memory), or INFLATE_TOO_MUCH, which a window of more than 128 MiB is as well. Of a window
 * no more memory is used than has come out. */
int unzstd(const char *data, size_t n, struct buf *out);

#endif
