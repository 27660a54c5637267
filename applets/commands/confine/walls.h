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
#define walls_limit_now(walls, exit_code) ((void)(walls), CONFINE_PARTS)
#define walls_put(out, walls) ((void)(walls))
#define walls_look(walls, cwd, text, n, said) ((void)(text), (void)(said))
#define walls_look_on(walls, stream, text, n, said) ((void)(text), (void)(said))
#define walls_time_ms(walls) ((void)(walls), -1LL)
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

/* Whether there is anything in it that confines. */
bool walls_confine(const struct policy *p);

/* For what begins in `cwd` (NULL: where the keeper's starter stood), whose control groups are removed when
 * the keeper ends. *walls is NULL where nothing was asked for. */
int walls_make(struct keeper *k, const struct walls_params *p, const char *cwd, struct confine **walls,
               struct err *err);

/* Packed code, behind walls_make: the same where there are some. */
void walls_tell_there(struct keeper *k, const struct confine *walls);
void walls_put_there(struct buf *out, const struct confine *walls);
void walls_look_there(const struct confine *walls, const char *cwd, const char *text, size_t n,
                      char said[CONFINE_SAID]);
void walls_look_on_there(const struct confine *walls, int stream, const char *text, size_t n,
                         char said[CONFINE_SAID]);
enum confine_what walls_limit_met_there(const struct confine *walls, int status);
enum confine_what walls_limit_now_there(const struct confine *walls, int exit_code);

/* Behind the keeper's word: a comma and the member `enforced`. */
#define walls_tell(k, walls) ((walls) ? walls_tell_there(k, walls) : (void)0)
/* The member `enforced` of an object. */
#define walls_put(out, walls) ((walls) ? walls_put_there(out, walls) : (void)0)
/* What the program says of a wall that it met, if it does: into `said`, an array of CONFINE_SAID. */
#define walls_look(walls, cwd, text, n, said)                                                                \
    ((walls) ? walls_look_there(walls, cwd, text, n, said) : (void)0)
/* The same of a stream, 0 or 1, of the keeper's program, of which this comes now. */
#define walls_look_on(walls, stream, text, n, said)                                                          \
    ((walls) ? walls_look_on_there(walls, stream, text, n, said) : (void)0)
/* How long it may run; -1: for ever. */
#define walls_time_ms(walls)                                                                                 \
    ((walls) && (walls)->wanted[CONFINE_WALL_SECONDS] ? (walls)->limits[CONFINE_WALL_SECONDS] * 1000 : -1)
/* The limit that has ended it, which ended so (as of waitpid) or after its time: CONFINE_PARTS: none has. */
#define walls_limit_met(walls, status) ((walls) ? walls_limit_met_there(walls, status) : CONFINE_PARTS)
/* The same of what a shell has run, which ended with that: since the last time that it was asked. */
#define walls_limit_now(walls, exit_code) ((walls) ? walls_limit_now_there(walls, exit_code) : CONFINE_PARTS)

#endif

#endif
