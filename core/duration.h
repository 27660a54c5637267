/* Times as people write them. */
#ifndef CORE_DURATION_H
#define CORE_DURATION_H

#include <stdbool.h>

#include "buf.h"

/* "5", "0.5", "5s", "500ms", "2m", "1h", "1d"; a number alone is seconds. False for anything else, and for
 * more than 10^9 seconds. */
bool duration_read(const char *text, double *seconds);

/* Appends seconds since 1970 as 2026-11-29T10:00:00Z: libc's strftime would bring the time zones of all the
 * world along. */
void time_put(struct buf *out, long long seconds);

#endif
