/* What is to be done with a file, and the functions that do it.
 *
 * Each appends the JSON text of its result to `answer`. When it fails (ERR_TOOL, which names the path) the
 * answer is the error's kind alone, as docs/files.md lists them. Everything is done with the process's own
 * rights; relative paths are taken from its directory. */
#ifndef FILE_REQUEST_H
#define FILE_REQUEST_H

#include <stdbool.h>
#include <sys/types.h>

#include "buf.h"
#include "err.h"
#include "params.h"
#include "user_param.h"

struct file_bytes {
    struct text data, encoding, if_sha256;
    long long offset, length; /* offset -1: not given */
    bool sha256, append;
};

struct file_how {
    struct text owner;
    double mtime;        /* negative: not given */
    long long mode, gid; /* -1: not given */
    bool parents, exclusive, overwrite, recursive, follow, hard;
};

struct file_page {
    struct text glob, after, sort;
    long long depth, limit;
    bool hidden;
};

/* What is sought: a flat record, as parameters are. */
struct file_seek {
    struct text pattern, type, glob;
    struct texts exclude;
    bool literal, ignore_case, hidden, ignores, multiline, counts;
    long long context, limit, min_size, max_size;                    /* of sizes -1: not given */
    double newer, older, timeout;                                    /* times: negative: not given */
    void (*tell)(void *arg, const char *what, unsigned long long n); /* how far it is; NULL: nobody asks */
    void *arg;
};

struct file_request {
    struct text path, to;
    struct user_param user;
    struct file_bytes bytes;
    struct file_how how;
    struct file_page page;
    struct file_seek seek;
};

/* The numbers of the owner that is asked for; (uid_t)-1, (gid_t)-1: it stays. */
int file_owner(const struct file_how *how, uid_t *uid, gid_t *gid, struct buf *answer, struct err *err);

typedef int file_work(const void *request, struct buf *answer, struct err *err);
file_work file_read, file_write, file_stat, file_list, file_make_dir, file_remove, file_move, file_copy,
    file_link, file_chmod, file_chown, file_touch, file_disk_usage, file_space, file_find, file_search;

#endif
