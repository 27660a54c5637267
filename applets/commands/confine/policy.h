/* What is confined, in the words of params and of command lines. */
#ifndef APPLETS_CONFINE_POLICY_H
#define APPLETS_CONFINE_POLICY_H

#include "confine.h"
#include "params.h"

struct policy {
    struct text preset;
    struct texts read, write, execute, hide, network;
    bool private_tmp, best_effort;
};

struct limits {
    long long memory, processes, cpu_seconds, wall_seconds, file_size, open_files; /* < 0: none */
    double cpus;
};
#define LIMITS_NONE                                                                                          \
    {                                                                                                        \
        -1, -1, -1, -1, -1, -1, -1                                                                           \
    }

extern const struct params_table policy_params, limits_params;

/* *c from both, for a program that begins in `cwd` (NULL: where we are). Relative paths are from there. -1
 * with ERR_PARAMS or ERR_TOOL that says what is wrong; policy_release in any case. */
int policy_make(struct confine *c, const struct policy *p, const struct limits *l, const char *cwd,
                struct err *err);
void policy_release(struct confine *c);
void policy_add_path(struct confine *c, enum confine_what what, const char *real);
/* What goes with every wall. */
void policy_take_walls(struct confine *c);

#endif
