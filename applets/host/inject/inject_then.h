/* One target made ready for a command that then works in it by itself. */
#ifndef INJECT_THEN_H
#define INJECT_THEN_H

#include "host/inject/injection.h"

/* Makes the target ready and returns what `work` does. Where that fails or a signal comes, it says so on
 * stderr and returns the exit status of the failure; the signal, or 0, goes to *interrupted (NULL: nobody
 * asks). */
int inject_then(const char *applet, const struct inject_options *o, const struct target *t,
                int (*work)(void *arg, const char *applet, const struct target *t,
                            const struct inject_result *r),
                void *arg, int *interrupted);

#endif
