/* From what the command line names to the targets that are meant. */
#ifndef INJECT_TARGET_LIST_H
#define INJECT_TARGET_LIST_H

#include "host/inject/target.h"
#include "host/inject/transport.h"

struct target_list {
    struct target *list;
    size_t n;
};

void target_list_release(struct target_list *l);
#define TARGET_LIST_AUTO __attribute__((cleanup(target_list_release)))

/* Adds the target of that text, or all that a pattern stands for (the runtime is asked). One that is there
 * already is not added again; a pattern that can't be listed, or that nothing fits, is added itself and says
 * why. -1 with ERR_PARAMS: it is no target. */
int target_list_add(struct target_list *l, const char *text, const struct runtime_options *options,
                    struct transport *transport, struct err *err);

#endif
