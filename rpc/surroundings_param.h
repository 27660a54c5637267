/* The surroundings of whoever has something started, as a parameter: what it would inherit if it were started
 * there, {env, cwd, umask, limits}. applets/surroundings.h writes it. */
#ifndef RPC_SURROUNDINGS_PARAM_H
#define RPC_SURROUNDINGS_PARAM_H

#include "keeper.h"
#include "params.h"

struct surroundings {
    struct texts env; /* list == NULL: the parameter was not given */
    struct text cwd;
    long long umask;
    struct ints limits;
};

/* The members of the object. */
extern const struct params_table surroundings_params;

#define SURROUNDINGS_PARAM(offset_)                                                                          \
    {                                                                                                        \
        .key = "surroundings", .type = PARAM_OBJECT, .offset = (offset_), .table = &surroundings_params,     \
        PARAM_DOC("What it begins with in the place of the server's own", "the server's")                    \
    }

/* In a keeper that has started nothing yet: what it starts begins with them from now on. Takes
 * the lists over. */
int surroundings_enter(struct surroundings *s, struct base *base, struct err *err);

#endif
