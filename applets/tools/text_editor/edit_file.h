/* A file in memory, as it is edited.
 *
 * Edits of one file exclude each other by a lock (flock) on it, whoever makes them. Some other program can
 * hold that lock for ever: after a while an edit goes on without, and edit_write.h sees to it that nothing is
 * lost. */
#ifndef EDIT_FILE_H
#define EDIT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "buf.h"
#include "edit_path.h"
#include "err.h"

struct edit_file {
    int fd;          /* O_RDONLY */
    struct stat st;  /* of when it was read */
    struct buf data; /* all of it, after edit_file_load */
    bool locked;     /* by us */
    bool pseudo; /* made up while it is read (/proc, /sys): its size says nothing, and it takes its content in
                    one write */
};

#define EDIT_FILE_INIT                                                                                       \
    {                                                                                                        \
        .fd = -1, .data = BUF_INIT                                                                           \
    }

/* One change of a content: `cut` bytes at `at` make way for `put`. The memory is somebody else's. */
struct splice {
    size_t at, cut;
    const char *put;
    size_t n_put;
};

/* Opens what the path names, which must be a regular file: nothing else is ever opened. */
int edit_file_open(struct edit_file *f, const struct edit_path *p, struct err *err);

/* Opens, locks and reads a file that is going to be edited; refused when it can't be written or is larger
 * than EDIT_FILE_MAX. p->st is renewed. */
int edit_file_load(struct edit_file *f, struct edit_path *p, struct err *err);

/* Reads it again from the begin. */
int edit_file_read(struct edit_file *f, const struct edit_path *p, struct err *err);

/* Whether nothing was written to the file between the two looks, and it is one. */
bool edit_same_content(const struct stat *a, const struct stat *b);

/* Writes pieces one behind the other at the descriptor's position, as few calls as can be. Changes `parts`.
 * -1 with errno. */
int edit_write_parts(int fd, struct iovec *parts, size_t n);

/* For a buffer that will hold a large file: a fault for each small page costs as much as the reading. */
void edit_use_large_pages(const struct buf *b);

/* Takes a flock, waiting up to `ms`. False when somebody else keeps it. */
bool edit_lock(int fd, int ms);

void edit_file_release(struct edit_file *f);
#define EDIT_FILE_AUTO __attribute__((cleanup(edit_file_release)))

#endif
