/* What is there of what is to be copied, so that only what differs is sent: one record for each path, with
 * NULs behind its parts. */
#ifndef TRANSFER_LIST_H
#define TRANSFER_LIST_H

#include <stdbool.h>
#include <sys/stat.h>

#include "buf.h"
#include "err.h"

struct listed {
    const char *path, *more; /* of a link where it leads, of a file its sha256; or nothing */
    long long size, seconds;
    long nanoseconds;
    mode_t mode;
    uid_t uid;
    gid_t gid;
    bool seen;
};

struct list {
    struct buf text;
    struct listed *all; /* in the order of a walk */
    size_t n;
};

void list_put(struct buf *out, const char *path, const struct stat *st, const char *more);
void list_put_end(struct buf *out);
/* Reads it to its end. -1 with ERR_TOOL. */
int list_take(struct list *l, int fd, struct err *err);
void list_release(struct list *l);
/* NULL: nothing is there. */
struct listed *list_find(const struct list *l, const char *path);
/* Those at and below one: up to the one that is returned. */
const struct listed *list_behind(const struct list *l, const struct listed *at);

#endif
