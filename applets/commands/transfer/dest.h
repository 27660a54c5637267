/* Where copies go, by the rules of cp: into a directory that is there, or under the name that is given. */
#ifndef TRANSFER_DEST_H
#define TRANSFER_DEST_H

#include <stdbool.h>

#include "buf.h"
#include "err.h"

struct dest {
    int root;             /* directory, below which everything stays; -1: there is none */
    char *as;             /* the name in the place of the source's; NULL: its own */
    char *const *names;   /* of the sources, which nothing else may come as; "." is what is in one */
    bool wants_directory; /* the path has ended in a slash, and nothing is there */
};

/* Opens it. `make`: the directories that are missing are made. A directory that isn't there and isn't to be
 * made is root -1. -1 with ERR_TOOL. */
int dest_open(struct dest *d, const char *path, char *const *names, bool make, struct err *err);
void dest_close(struct dest *d);

/* The path below root that an entry's path stands for; "" is root itself. -1 with ERR_TOOL: it has no
 * business there. */
int dest_path(const struct dest *d, const struct buf *path, struct buf *out, struct err *err);
/* The other way round. */
void dest_name(const struct dest *d, const char *path, struct buf *out);

#endif
