/* Going through a tree of files: sorted, bounded, without a shell.
 *
 * Symlinks are not followed, so no loop is ever walked, but for the one that the start itself may be. What
 * the kernel makes up (proc, sysfs and their like) is not entered from outside. Entries whose names begin
 * with a dot, and what matches one of the patterns to leave out, are skipped with all that is below; and so,
 * where that is wanted, is what the files .gitignore and .ignore say that are come by. */
#ifndef FILE_WALK_H
#define FILE_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "err.h"

enum walk_type { WALK_FILE, WALK_DIRECTORY, WALK_SYMLINK, WALK_OTHER };

struct walk_entry {
    int dir;          /* descriptor of the directory that it is in */
    const char *name; /* in that */
    const char *path; /* from the start on, without a slash in front */
    enum walk_type type;
    unsigned depth; /* from 1 */
};

struct walk {
    bool hidden;          /* entries whose names begin with a dot too */
    char *const *exclude; /* patterns (glob.h): those with a '/' for paths, others for names */
    size_t n_exclude;
    bool ignores;          /* as .gitignore and .ignore say; .git is left out too */
    unsigned max_depth;    /* 0: any */
    long long deadline_ms; /* of now_ms(); 0: none */

    /* True to go on. */
    bool (*entry)(void *arg, const struct walk_entry *e);
    void *arg;

    /* results */
    unsigned long long seen;       /* entries */
    unsigned long long unreadable; /* directories that could not be read, or not to their end */
    bool late;                     /* the deadline has passed */
    bool stopped;                  /* by `entry` */
    /* inside */
    char path[4096];
    size_t n_path;
    struct ignore_rule *rules;
    size_t n_rules;
};

/* Walks what is below the directory. -1 with ERR_TOOL when that itself can't be read. */
int walk_run(struct walk *w, const char *start, struct err *err);

#endif
