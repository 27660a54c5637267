/* Where the records of ended jobs stand, in the place: short ones in one table, each in the slot of its pid;
 * the others in files of their own. A file is made only where it has to be: a file system without a journal
 * (ext4) looks at every inode that was removed lately before it gives one away.
 *
 * The table is sparse: only pages with records in them take room. What is in a record is not known here, but
 * that it begins with when somebody last asked for it (shelf_now). */
#ifndef APPLETS_EXEC_REMOTE_JOB_SHELF_H
#define APPLETS_EXEC_REMOTE_JOB_SHELF_H

#include <stdbool.h>
#include <sys/types.h>

#include "err.h"
#include "fifo.h"

#define SHELF_KEPT_S 3600 /* since somebody last asked for it */

/* Seconds of a clock that nobody sets; never 0. */
long long shelf_now(void);
/* Seconds since then; more than SHELF_KEPT_S of a record from before the machine was started. */
long long shelf_age(long long asked);

/* A record that was found. */
struct shelf {
    int fd;
    off_t at;    /* where the record begins */
    size_t size; /* of what can be read from there */
};

/* Locked until it is closed. False: there is none of that pid. */
bool shelf_find(struct shelf *s, int dirfd, pid_t pid);
void shelf_close(struct shelf *s);

/* A stretch of a record: bytes, and behind them what is in `more` (NULL: nothing), which stays there. */
struct shelf_piece {
    const char *data;
    size_t n;
    const struct fifo *more;
};
/* Puts a record there, all or nothing. */
int shelf_put(int dirfd, pid_t pid, const struct shelf_piece *pieces, size_t n, struct err *err);

/* Whether the file has records, of whichever build, that somebody may still ask for. */
bool shelf_is_in(int dirfd, const char *name);

void shelf_remove(int dirfd, pid_t pid);
/* Removes those that nobody has asked for lately. */
void shelf_sweep(int dirfd);
/* Calls fn with every record. */
void shelf_each(int dirfd, void (*fn)(void *arg, pid_t pid, const struct shelf *s), void *arg);

#endif
