/* Times as people write them. */
#ifndef CORE_DURATION_H
#define CORE_DURATION_H

#include <stdbool.h>

/* "5", "0.5", "5s", "500ms", "2m", "1h", "1d"; a number alone is seconds. False for anything else, and for
 * more than 10^9 seconds. */
bool duration_read(const char *text, double *seconds);

#endif
