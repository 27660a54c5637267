/* Paths of requests, and what is said when something can't be done with one. */
#ifndef FILE_PATH_H
#define FILE_PATH_H

#include <sys/stat.h>

#include "buf.h"
#include "err.h"
#include "params.h"

/* The path that is meant: as it is or, where nothing is there, what a quoted one stands for, by which names
 * are shown that are no text. free() it. */
char *file_path(const struct text *path);
/* Appends the directory and name, or the relative path, as a JSON string that file_path understands. */
void file_put_path(struct buf *out, const char *path);

#define FILE_NO_USER "no_user" /* the kind of a failure to find a user */
/* The kind of a failure of the system. */
const char *file_kind_of(int errnum);

/* Fails: -1, and *answer is the kind. */
int file_fail(struct buf *answer, struct err *err, int errnum, const char *path);
/* The same for what no errno says. */
int file_refuse(struct buf *answer, struct err *err, const char *kind, const char *path, const char *why);

/* Makes the directories that lead to a path. -1 with errno. */
int file_make_parents(const char *path);

/* Appends `{"type": …}` with all that stat tells of a file; the object stays open for more members. `at` and
 * `name` are where a link's target is read. */
void file_put_stat(struct buf *out, int at, const char *name, const struct stat *st);

#endif
