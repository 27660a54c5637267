/* The parts of confine.c. Each notes in the report what it holds. */
#ifndef CORE_CONFINE_INTERNAL_H
#define CORE_CONFINE_INTERNAL_H

#include "confine.h"

static inline void confine_note(const struct confine *c, enum confine_what what, unsigned by)
{
    c->report->by[what] |= (unsigned char)by;
}

static inline bool confine_held(const struct confine *c, enum confine_what what)
{
    return c->report->by[what] != 0;
}

/* Landlock's version, 0: none. */
int confine_landlock_abi(void);
int confine_landlock(const struct confine *c, struct err *err);

/* Namespaces of mounts, IPC and network, by the rights that this process has or, as the user that it stays,
 * those of a user namespace. What can't be made is left out. */
int confine_namespaces(const struct confine *c, struct err *err);
/* After it: where we are, as it is seen there. */
void confine_reenter(void);

int confine_seccomp(const struct confine *c, struct err *err);

/* ---- confine_limits.c ---- */
void confine_group_make(struct confine *c);
int confine_group_enter(const struct confine *c, struct err *err);
void confine_rlimits(const struct confine *c);
int confine_drop_privileges(const struct confine *c, bool walls, struct err *err);

/* The files of devices that every program may use. Ends with NULL. */
extern const char *const confine_devices[];

#endif
