/* Directories that nobody else can exchange.
 *
 * A path is only as trustworthy as every part that leads to it: who may write to one of the directories above
 * can move away what is below it and put something else there. So a path is walked from / one part at a time,
 * each opened through the one before without following a link, and checked through its own descriptor; what
 * is done then is done with that descriptor. Test and use are one thing.
 *
 * Each directory on the way, and the last one, has to be root's or the effective user's, and nobody else's to
 * write to (mode & 022; an access control list shows there as well). A sticky one will do, as /tmp is: what
 * lies below it is checked in turn, and those others can't move it. A link on the way has to be root's or the
 * user's too, and is walked in the same manner.
 *
 * In a user namespace the owner of a file may have no number: he then shows as the overflow uid (65534). He
 * counts as root where / itself is such a one's, and only where no user of the namespace has that number:
 * whom the namespace knows is never taken for root. */
#ifndef CORE_SAFE_PATH_H
#define CORE_SAFE_PATH_H

#include <stddef.h>

#include "err.h"

enum {
    SAFE_MAKE = 1,    /* what is missing is made: 0755 as the umask allows, the last one 0700 in any case */
    SAFE_NO_LINK = 2, /* the last part may be no link */
    SAFE_ALONE = 4,   /* nobody else can put anything into it: sticky is not enough */
};

/* Opens a directory for reading, close-on-exec. `root` is a directory that is taken for / (-1: the real one),
 * out of which neither ".." nor a link leads; the path begins with "/". *made (may be NULL) is the length of
 * that beginning of the path which ends in the topmost directory that was made, also where it fails then; 0:
 * none. -1 with ERR_TOOL, the path and what is wrong with which part of it, and errno: EPERM when it isn't
 * safe. */
int safe_path_open(int root, const char *path, int flags, size_t *made, struct err *err);

/* As safe_path_open, for a directory of a peer's: whose it is, is trusted on the way to it as well. */
int safe_path_open_of(const char *path, struct err *err);

/* Opens (O_PATH) the directory that holds the last part of a path, which nobody else can exchange either;
 * *name is that part, inside `path`. What is found under the name is still to be looked at. */
int safe_path_above(int root, const char *path, const char **name, struct err *err);

/* Whether a file is as trustworthy, wherever links lead to it: nobody else can write to it, or put another
 * one there. 0, or -1 as safe_path_open. */
int safe_path_file(const char *path, struct err *err);

/* The first program of that name on a PATH that is such a file; free() it. NULL: there is none. */
char *safe_path_find(const char *path, const char *name);

/* Removes an empty directory. 0, or -1 with errno. */
int safe_path_rmdir(const char *path);

#endif
