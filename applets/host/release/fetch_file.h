/* Files from the network, into memory or into a folder: what was cut off is gone on with. */
#ifndef RELEASE_FETCH_FILE_H
#define RELEASE_FETCH_FILE_H

#include "buf.h"
#include "fetch_get.h"

/* A small file, whole; `out`'s max bounds it. 1, 0 where the server has none (404), -1 with ERR_TOOL. */
int fetch_text(const struct fetch_options *options, const char *address, struct buf *out, struct err *err);

/* A file that is being fetched: ".NAME.part" in its folder, readable for its owner alone and not executable.
 */
struct fetch_part {
    int dir, fd;
    char *name;        /* of the part */
    const char *shown; /* for the progress bar; NULL: none */
};
#define FETCH_PART_INIT                                                                                      \
    {                                                                                                        \
        .dir = -1, .fd = -1                                                                                  \
    }

/* Opens (and locks) the part, of an earlier fetch as well. -1 with ERR_TOOL. dir stays the caller's. */
int fetch_part_open(struct fetch_part *part, int dir, const char *name, struct err *err);

/* Fetches what is missing; a connection that is cut is made again a few times. At most `max` bytes in all.
 * When it is cut off for good, what has come stays for the next time. *resumed: the start is of an earlier
 * fetch. */
int fetch_part_fill(struct fetch_part *part, const struct fetch_options *options, const char *address,
                    unsigned long long max, bool *resumed, struct err *err);

/* Gives the part its name and mode, on the disk before anybody sees it. -1 with ERR_TOOL. */
int fetch_part_place(struct fetch_part *part, const char *name, unsigned mode, struct err *err);

void fetch_part_discard(struct fetch_part *part); /* and its bytes */
void fetch_part_close(struct fetch_part *part);
#define FETCH_PART_AUTO __attribute__((cleanup(fetch_part_close)))

#endif
