/* Which file a path means: resolved once, so that every name of a file leads to one place. */
#ifndef EDIT_PATH_H
#define EDIT_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "err.h"

/* Owned by the caller: edit_path_release, also after a failure. */
struct edit_path {
    char *real;       /* absolute, without symlinks, "." and ".." */
    char *shown;      /* for messages: the real path, or what was asked for where that can't be resolved */
    const char *name; /* last component, inside real; "." for the root directory */
    int dir;          /* the directory that holds it (O_PATH), to which no link has led */
    bool exists;
    struct stat st; /* valid when it exists */
};

#define EDIT_PATH_INIT                                                                                       \
    {                                                                                                        \
        .dir = -1                                                                                            \
    }

/* Resolves a path of n bytes; where no such file exists, one in the form of edit_path_shown is taken as well.
 * With may_be_missing the last component (or the one that a dangling symlink leads to) need not exist, but
 * its directory must. ERR_TOOL, naming the path, when there is none. */
int edit_path_resolve(struct edit_path *p, const char *path, size_t n, bool may_be_missing, struct err *err);

/* Makes the directories that a path needs. *made: the length of that beginning of it which is the topmost one
 * that was made, also where it fails; 0: none. And removes them, as far as they are empty. */
int edit_make_parents(const char *path, size_t *made, struct err *err);
void edit_unmake_parents(const char *path, size_t made);

void edit_path_release(struct edit_path *p);
#define EDIT_PATH_AUTO __attribute__((cleanup(edit_path_release)))

/* A path as it can be printed: as it is, or in double quotes with C escapes where it holds control characters
 * or bytes that are no UTF-8 (then it starts with a quote, which a plain one never does). `max`: bytes; a
 * longer one loses its middle; 0: no limit. free() it. */
char *edit_path_shown(const char *path, size_t n, size_t max);

/* The bytes that such a quoted path stands for; NULL when it isn't one. free() it. */
char *edit_path_unquoted(const char *path, size_t n);

/* Text of an errno value; what a person has to know about links is said in full. */
const char *edit_errno(int errnum);

/* What a mode's type is called ("a directory", "a FIFO", …). */
const char *edit_type(mode_t mode);

#endif
