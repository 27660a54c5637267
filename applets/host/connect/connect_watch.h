/* Whether a container's name still leads to the one that it led to: Docker's engine tells, over its socket,
 * when one is given another name. */
#ifndef CONNECT_WATCH_H
#define CONNECT_WATCH_H

#include <stdbool.h>

#include "loop.h"

struct connect_watch;

/* since_ms: of the wall clock; what happened from then on is told. `told`: the name has changed hands, or
 * (`lost`) the engine says nothing more; once. NULL: there is no socket of an engine. */
struct connect_watch *connect_watch_begin(struct loop *loop, const char *container, long long since_ms,
                                          void (*told)(bool lost));
void connect_watch_end(struct connect_watch **watch); /* NULL in it is fine */

#endif
