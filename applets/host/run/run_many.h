/* One thing done in many targets at once: a process for each, so many at a time; what they print line by line
 * with the target in front, or an object for each. */
#ifndef RUN_MANY_H
#define RUN_MANY_H

#include <stdbool.h>

#include "host/inject/inject_types.h"
#include "host/inject/target_list.h"

struct run_many {
    const char *applet;
    /* jobs: at a time; json: an object a line for each as it ends, in the place of its output; own: is set,
     * so that each doesn't read it again. */
    struct inject_options *inject;
    /* Runs in a process of its own, with stdout and stderr of its own; its result is that one's exit status.
     */
    int (*one)(void *arg, const struct target *t);
    void *arg;
};

/* The highest exit status of them; each that failed is named on stderr. 128+N: signal N has ended us. */
int run_many(const struct run_many *how, const struct target_list *targets);

/* Adds the targets that the words name, and all that patterns stand for. EXIT_OK, or what was said for
 * `applet`. */
int run_many_collect(struct target_list *targets, char *const *words, int n,
                     const struct runtime_options *runtimes, int timeout_ms, const char *applet);

#endif
