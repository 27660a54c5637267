/* What is in a tree and how it changes: inotify says where to look, and what is found there is compared with
 * what was known, so that an event more or less, and even a lost one, changes nothing in what is told.
 *
 * Links are not followed but for the start's own. Packed code (core/code_parts.def): behind
 * code_unpack(CODE_file). */
#ifndef FILE_WATCH_TREE_H
#define FILE_WATCH_TREE_H

#include <stdbool.h>
#include <stddef.h>

#include "err.h"
#include "user.h"

struct watch_tree;

/* How a path has changed; a directory before what is in it. */
typedef void (*watch_tell)(void *arg, const char *path, const char *how, bool directory);

struct watch_tree_wants {
    char *const *exclude; /* patterns, as of walk.h */
    size_t n_exclude;
    bool deep;               /* also what is in the directories there */
    int from;                /* the directory that a relative path begins at; -1: the process's own */
    const struct user *user; /* with whose rights; NULL: the process's own. It stays the caller's */
    watch_tell tell;
    void *arg;
};

/* Of a directory, or of a file alone. NULL with ERR_TOOL, which names it, and errno. */
struct watch_tree *watch_tree_new(const char *path, const struct watch_tree_wants *wants, struct err *err);

int watch_tree_fd(const struct watch_tree *t);
/* Takes what inotify has to say. True: there is something to look at. */
bool watch_tree_read(struct watch_tree *t);

/* Looks there, and tells what has changed. */
struct watch_seen {
    bool lost;       /* there were more changes than the kernel keeps, so all was compared */
    bool incomplete; /* some of it can't be read or watched */
    bool gone;       /* what is watched is no more */
};
struct watch_seen watch_tree_look(struct watch_tree *t);

#endif
