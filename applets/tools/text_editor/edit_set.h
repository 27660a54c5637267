/* Changes of several files that are made together, or not at all.
 *
 * What the files will be is worked out in memory, one change after the other; then each is written as any
 * edit is, whole and so that it can be undone. One that fails has those before it put back. */
#ifndef EDIT_SET_H
#define EDIT_SET_H

#include <stdbool.h>
#include <sys/stat.h>

#include "buf.h"
#include "err.h"

struct set_file {
    char *real, *shown;
    bool existed, exists;
    struct buf before, now;
    struct stat st;              /* of the one that existed */
    mode_t mode;                 /* that it gets, where it is another one; 0: as it is */
    struct set_file *from;       /* it is that file, under another name */
    bool target;                 /* of a move */
    bool written, placed, moved; /* inside */
    size_t made;
};

struct edit_set {
    char *root; /* nothing outside is changed; NULL: anything may be */
    struct set_file **files;
    size_t n;
};
#define EDIT_SET_AUTO __attribute__((cleanup(edit_set_release)))
void edit_set_release(struct edit_set *set);

/* A file of the set, by a path of n bytes: as the changes so far have left it. Where there is none, f->exists
 * is false; its directories may be missing as well. ERR_TOOL: it is no regular file, is outside, or can't be
 * written. */
int edit_set_take(struct edit_set *set, const char *path, size_t n, struct set_file **f, struct err *err);

/* Makes `to`, which isn't there, the same file as `from`, which goes; its content stays to be set. */
void edit_set_move(struct set_file *from, struct set_file *to);

/* Does it, and appends a line for each file: A, M, D or R and its name. */
int edit_set_commit(struct edit_set *set, struct buf *answer, struct err *err);

#endif
