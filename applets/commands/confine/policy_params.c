/* Beside policy.c, whose code is packed. */
#include "policy.h"

#include <stddef.h>

#define POLICY(member) offsetof(struct policy, member)
#define LIMITS(member) offsetof(struct limits, member)

static const struct param policy_list[] = {
    {.key = "preset",
     .type = PARAM_NAME,
     .offset = POLICY(preset),
     PARAM_DOC("readonly, workspace (writes below its directory and /tmp, no network) or offline; the others "
               "add to it",
               "none")},
    {.key = "read",
     .type = PARAM_NAMES,
     .offset = POLICY(read),
     PARAM_DOC("Nothing else can be read", "everything can")},
    {.key = "write",
     .type = PARAM_NAMES,
     .offset = POLICY(write),
     PARAM_DOC("Nothing else can be written", "everything can")},
    {.key = "execute",
     .type = PARAM_NAMES,
     .offset = POLICY(execute),
     PARAM_DOC("Nothing else can be run", "everything can")},
    {.key = "hide", .type = PARAM_NAMES, .offset = POLICY(hide), PARAM_DOC("They look empty", "none")},
    {.key = "network",
     .type = PARAM_NAMES,
     .offset = POLICY(network),
     PARAM_DOC("What there is of it: none, unix, loopback, all, connect:PORT, bind:PORT", "all")},
    {.key = "private_tmp",
     .type = PARAM_BOOL,
     .offset = POLICY(private_tmp),
     PARAM_DOC("It has an empty /tmp of its own", "false")},
    {.key = "best_effort",
     .type = PARAM_BOOL,
     .offset = POLICY(best_effort),
     PARAM_DOC("Go on without what can't be had here", "false")},
};
const struct params_table policy_params = PARAMS_TABLE(policy_list);

#define LIMIT(key_, about_)                                                                                  \
    {                                                                                                        \
        .key = #key_, .type = PARAM_INT, .offset = LIMITS(key_), .min = 1, .max = PARAM_MAX,                 \
        PARAM_DOC(about_, "none")                                                                            \
    }

static const struct param limits_list[] = {
    LIMIT(memory, "Bytes of all its processes, or of each"),
    LIMIT(processes, "How many it may be at a time"),
    {.key = "cpus",
     .type = PARAM_NUMBER,
     .offset = LIMITS(cpus),
     .min = 0.01,
     .max = 4096,
     PARAM_DOC("Of how many processors it has the time", "none")},
    LIMIT(cpu_seconds, "Time of a processor that each process may take"),
    LIMIT(wall_seconds, "How long it may run"),
    LIMIT(file_size, "Bytes of a file that it writes"),
    LIMIT(open_files, "Descriptors of a process"),
};
const struct params_table limits_params = PARAMS_TABLE(limits_list);
