/* The directory in which a user's server listens and his undo history and long answers are kept.
 *
 * $TOOLBOX_DIR, else $INSPECT_SANDBOX_TOOLS_DIR, else the first usable of a fixed list that depends on the
 * uid alone (HOME, TMPDIR and the like differ from call to call, and two calls must find the same server):
 *   /run/toolbox (root) or /run/user/UID/toolbox (others), /tmp/.toolbox-UID, /var/tmp/.toolbox-UID,
 * /dev/shm/.toolbox-UID, <home of passwd>/.cache/toolbox. Usable: mode 0700, owned by the process's own
 * effective uid, no symlink, and below directories in which nobody else can put something into its place
 * (core/safe_path.h). Anything else that is found there is passed over, or, where a variable names it,
 * refused with an error that names it; so is a relative path. */
#ifndef CORE_PLACE_H
#define CORE_PLACE_H

#include <stdbool.h>

#include "buf.h"
#include "err.h"

struct place {
    int fd;     /* the directory, O_RDONLY; -1: none */
    char *path; /* absolute */
};
#define PLACE_INIT                                                                                           \
    {                                                                                                        \
        .fd = -1                                                                                             \
    }

/* The n-th candidate (from 0) for the effective uid; false behind the last. With a variable set it is the
 * only one. */
bool place_candidate(unsigned n, struct buf *path);

/* Whether a variable names it: then it can be somebody's who has other things in it. */
bool place_is_given(void);

/* Opens one directory, made when `create`. -1 with ERR_TOOL and the reason, naming the path. */
int place_enter(struct place *p, const char *path, bool create, struct err *err);

/* Opens the first candidate that is usable and can be written to, made when missing. The error names every
 * place that was tried and why it was not used. */
int place_open(struct place *p, struct err *err);

/* -1 with ERR_TOOL where a variable names a directory that is there and can't be used. For those who start
 * nothing: where the directory isn't there yet, or may be used, it is 0. */
int place_check_given(struct err *err);

/* Opens (and makes, when `create`) a private directory inside a place; same checks. Returns its descriptor or
 * -1. */
int place_subdir(const struct place *p, const char *name, bool create, struct err *err);

void place_release(struct place *p);
#define PLACE_AUTO __attribute__((cleanup(place_release)))

#endif
