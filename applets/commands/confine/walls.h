/* What keepers put around what they start: nothing in a guest, for want of room. */
#ifndef APPLETS_CONFINE_WALLS_H
#define APPLETS_CONFINE_WALLS_H

#include "keeper.h"
#include "policy.h"

/* As a method's params have them. */
struct walls_params {
    struct policy confine;
    struct limits limits;
};
#define WALLS_DEFAULTS                                                                                       \
    {                                                                                                        \
        .limits = LIMITS_NONE                                                                                \
    }

#ifdef TOOLBOX_GUEST
#define WALLS_PARAMS(at)
#define walls_make(k, p, cwd, walls, err) ((void)(p), *(walls) = NULL, 0)
#define walls_tell(k, walls) ((void)(walls))
#define walls_limit_met(walls, status) ((void)(status), CONFINE_PARTS)
#else
#define WALLS_PARAMS(at)                                                                                     \
    {.key = "confine",                                                                                       \
     .type = PARAM_OBJECT,                                                                                   \
     .offset = (at) + offsetof(struct walls_params, confine),                                                \
     .table = &policy_params,                                                                                \
     PARAM_DOC("What it may do, as of 'toolbox confine'", "all that its user may")},                         \
        {.key = "limits",                                                                                    \
         .type = PARAM_OBJECT,                                                                               \
         .offset = (at) + offsetof(struct walls_params, limits),                                             \
         .table = &limits_params,                                                                            \
         PARAM_DOC("What it may use up", "none")},

/* For what begins in `cwd` (NULL: where the keeper's starter stood), whose control groups are removed when
 * the keeper ends. *walls is NULL where nothing was asked for. */
int walls_make(struct keeper *k, const struct walls_params *p, const char *cwd, struct confine **walls,
               struct err *err);

/* Behind the keeper's word: a comma and the member `enforced`; nothing without walls. */
void walls_tell(struct keeper *k, const struct confine *walls);

/* The limit that has ended it, which ended so (as of waitpid) or after its time: CONFINE_PARTS: none has. */
enum confine_what walls_limit_met(const struct confine *walls, int status);

#endif

#endif
