/* Many targets at once: a process for each, so many at a time. */
#ifndef INJECT_MANY_H
#define INJECT_MANY_H

#include "host/inject/inject_types.h"
#include "host/inject/target_list.h"

/* Makes one target ready and fills *r; runs in a process of its own. */
typedef void (*inject_many_fn)(const struct inject_options *o, const struct target *t,
                               struct transport *transport, struct inject_result *r);

/* Does that to all of them, o->jobs at a time; shows progress on a terminal and prints a table (or a JSON
 * object a line, as they come). The highest exit status of them, or 128+N: signal N has ended us. */
int inject_many(const struct inject_options *o, const struct target_list *targets,
                struct transport *transport, const char *applet, inject_many_fn one);

#endif
