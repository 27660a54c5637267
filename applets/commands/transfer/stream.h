/* Trees as a stream of bytes: a tar archive (ustar, with pax headers where those don't suffice).
 *
 * Two kinds of entries are our own, and go between two of us alone: one removes a name, one says that all
 * that was sent so far is to be finished. */
#ifndef TRANSFER_STREAM_H
#define TRANSFER_STREAM_H

#include <stdbool.h>
#include <sys/types.h>
#include <time.h>

#include "buf.h"
#include "err.h"

enum entry_type {
    ENTRY_FILE = '0',
    ENTRY_TWIN = '1', /* another name of a file: `target` is its path in the stream */
    ENTRY_LINK = '2',
    ENTRY_DIRECTORY = '5',
    ENTRY_FIFO = '6',
    ENTRY_REMOVE = 'R',
    ENTRY_FINISH = 'F',
};

struct entry {
    char type;               /* or another one, which can't be used */
    struct buf path, target; /* as they are in the stream */
    long long size;          /* of the file */
    long long stored;        /* bytes that follow in the stream */
    mode_t mode;             /* permission bits */
    uid_t uid;
    gid_t gid;
    struct timespec mtime;
    struct buf xattrs; /* each: name, NUL, length (a size_t), value */
    struct buf sum;    /* sha256, or nothing */
    bool sparse;       /* a map of what is stored is in front of it (hole_map) */
};
#define ENTRY_INIT                                                                                           \
    {                                                                                                        \
        .path = BUF_INIT, .target = BUF_INIT, .xattrs = BUF_INIT, .sum = BUF_INIT                            \
    }
void pax_entry_reset(struct entry *e);
void pax_entry_release(struct entry *e);
#define ENTRY_AUTO __attribute__((cleanup(pax_entry_release)))
void pax_entry_put_xattr(struct entry *e, const char *name, const void *value, size_t n);
/* Goes through them: *at is 0 at first. NULL: that was all. */
const char *pax_entry_xattr(const struct entry *e, size_t *at, const void **value, size_t *n);

#define STREAM_BLOCK 512
/* Up to the next block. */
size_t pax_padding(long long size);

/* Appends what goes in front of an entry's bytes. */
void pax_put(struct buf *out, const struct entry *e);
/* Appends the end of it all. */
void pax_put_end(struct buf *out);

/* A stream that is read. */
struct stream_in {
    int fd;
    char *data;
    size_t at, len;
};
#define STREAM_IN_SIZE (256u << 10)
struct stream_in *pax_in_new(int fd);
void pax_in_free(struct stream_in *in);
/* The next entry. 1; 0: the end; -1 with ERR_TOOL. */
int pax_next(struct stream_in *in, struct entry *e, struct err *err);
/* What there is at once of n bytes (at most): never 0. -1 with ERR_TOOL. */
ssize_t pax_take(struct stream_in *in, size_t n, const char **data, struct err *err);
/* Passes over so many. -1 with ERR_TOOL. */
int pax_skip(struct stream_in *in, long long n, struct err *err);
/* Reads what is behind the end, so that nobody is cut off who writes it. */
void pax_drain(struct stream_in *in);

/* Where the bytes of a sparse file belong. */
struct hole_map {
    struct hole_part {
        long long offset, size;
    } * parts;
    size_t n;
};
/* Appends the map as it stands in front of the bytes, padded. */
void hole_map_put(struct buf *out, const struct hole_map *map);
/* Reads it; *left, of the entry's stored bytes, becomes less. -1 with ERR_TOOL. */
int hole_map_take(struct stream_in *in, struct hole_map *map, long long *left, long long size,
                  struct err *err);
void hole_map_release(struct hole_map *map);

#endif
