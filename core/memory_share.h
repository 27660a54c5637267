/* How much memory one holder (the output of a job, a queue, a request) may fill with what others have sent or
 * have not read yet: a tenth of what is free under the tightest limit that applies to this process, so that
 * many holders leave room for what they hold it for. Limits are those of the control groups of both versions
 * and of those above them, of the process (RLIMIT_AS, RLIMIT_DATA) and of the machine. */
#ifndef CORE_MEMORY_SHARE_H
#define CORE_MEMORY_SHARE_H

#include <stddef.h>

#define MEMORY_SHARE_LEAST ((size_t)256 << 10) /* bytes that a holder may always have */

/* A holder's; zero to begin with. */
struct memory_share {
    size_t looked_at; /* what it held when limits were looked at last */
    size_t allowed;   /* and how much it may hold; 0: not looked yet */
};

/* How many bytes it may hold, never more than `most`, when it holds `held`. Limits are looked at only where
 * it has grown or shrunk a good deal since the last time. */
size_t memory_share(struct memory_share *s, size_t held, size_t most);

#endif
