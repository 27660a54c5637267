#include "fetch_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "fetch_progress.h"
#include "io.h"
#include "mem.h"

#define TRIES 4 /* without so much more in between: */
#define PROGRESS 65536
#define CONNECTIONS 200

/* ---- into memory ---- */

static int begin_text(void *arg, const struct http_response *head, struct err *err)
{
    struct buf *out = arg;
    buf_truncate(out, 0);
    return head->status == 200 ? 0 : err_set(err, ERR_TOOL, "the server sends a part that nobody asked for");
}

static int add_text(void *arg, const char *data, size_t n, struct err *err)
{
    return buf_add(arg, data, n) == 0
               ? 0
               : err_set(err, ERR_TOOL, "what the server sends is longer than such a file can be");
}

int fetch_text(const struct fetch_options *options, const char *address, struct buf *out, struct err *err)
{
    const struct fetch_sink sink = {begin_text, add_text, out};
    int status, result = -1;
    enum fetch_failure failure = FETCH_CUT;
    for (int i = 0; i < TRIES && result < 0 && failure == FETCH_CUT; i++)
        result = fetch_get(options, address, 0, &sink, &status, &failure, err);
    if (result < 0)
        return err_wrap(err, "can't fetch %s", address);
    return status == 404 ? 0 : 1;
}

/* ---- into a file ---- */

/* 1 when the part is open and locked; 0 when another process has just put that file into its place. */
static int open_once(struct fetch_part *part, const char *name, struct err *err)
{
    struct stat st, named;
    part->fd = openat(part->dir, part->name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (part->fd < 0)
        return err_sys(err, ERR_TOOL, errno, "can't write %s", part->name);
    if (fstat(part->fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_nlink > 1 || st.st_uid != geteuid())
        return err_set(err, ERR_TOOL, "%s is in the way: it is no file of ours", part->name);
    if (flock(part->fd, LOCK_EX | LOCK_NB) < 0)
        return err_set(err, ERR_TOOL, "%s is being fetched by another process", name);
    if (fstatat(part->dir, part->name, &named, AT_SYMLINK_NOFOLLOW) == 0 && named.st_ino == st.st_ino)
        return 1;
    io_close(&part->fd);
    return 0;
}

int fetch_part_open(struct fetch_part *part, int dir, const char *name, struct err *err)
{
    int opened = 0;
    part->dir = dir;
    part->name = mem_printf(".%s.part", name);
    for (int i = 0; i < TRIES && opened == 0; i++)
        opened = open_once(part, name, err);
    return opened == 0  ? err_set(err, ERR_TOOL, "%s is being fetched by another process", name)
           : opened < 0 ? -1
                        : 0;
}

struct filling {
    struct fetch_part *part;
    unsigned long long size, max;
    struct fetch_progress progress;
};

static int begin_file(void *arg, const struct http_response *head, struct err *err)
{
    struct filling *f = arg;
    if (head->status == 206 && (!head->has_range || head->range_start != f->size))
        return err_set(err, ERR_TOOL, "the server sends another part than it was asked for");
    if (head->status == 200) { /* it sends the whole */
        f->size = 0;
        if (ftruncate(f->part->fd, 0) < 0)
            return err_sys(err, ERR_TOOL, errno, "can't write %s", f->part->name);
    }
    if (head->has_length && head->length > f->max - f->size)
        return err_set(err, ERR_TOOL, "it is larger than any file of a release");
    fetch_progress_begin(&f->progress, f->part->shown, f->size,
                         head->has_length ? f->size + head->length : 0);
    return 0;
}

static int add_to_file(void *arg, const char *data, size_t n, struct err *err)
{
    struct filling *f = arg;
    if (n > f->max - f->size)
        return err_set(err, ERR_TOOL, "it is larger than any file of a release");
    while (n > 0) {
        ssize_t written = pwrite(f->part->fd, data, n, (off_t)f->size);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return err_sys(err, ERR_TOOL, errno, "can't write %s", f->part->name);
        f->size += (unsigned long long)written;
        data += written;
        n -= (size_t)written;
    }
    fetch_progress_draw(&f->progress, f->size);
    return 0;
}

int fetch_part_fill(struct fetch_part *part, const struct fetch_options *options, const char *address,
                    unsigned long long max, bool *resumed, struct err *err)
{
    struct stat st;
    struct filling f = {.part = part, .max = max};
    const struct fetch_sink sink = {begin_file, add_to_file, &f};
    int status, result = -1;
    enum fetch_failure failure = FETCH_CUT;
    if (fstat(part->fd, &st) == 0 && (unsigned long long)st.st_size <= max)
        f.size = (unsigned long long)st.st_size;
    *resumed = f.size > 0;
    unsigned long long before = f.size;
    for (int i = 0, in_all = 0; i < TRIES && in_all < CONNECTIONS && result < 0 && failure == FETCH_CUT;
         i++, in_all++) {
        if (i > 0)
            nanosleep(&(struct timespec){.tv_nsec = i * 100000000L}, NULL);
        result = fetch_get(options, address, f.size, &sink, &status, &failure, err);
        fetch_progress_end(&f.progress);
        if (f.size >= before + PROGRESS) {
            i = 0;
            before = f.size;
        }
    }
    if (result < 0 && (failure == FETCH_FINAL || f.size == 0)) /* nothing that could be gone on with */
        fetch_part_discard(part);
    if (result < 0 && f.size > 0 && failure != FETCH_FINAL)
        return err_wrap(
            err, "%s was cut off after %llu bytes (which are kept: the same command goes on from there)",
            address, f.size);
    if (result < 0)
        return err_wrap(err, "can't fetch %s", address);
    if (status == 404)
        fetch_part_discard(part);
    return status == 404 ? err_set(err, ERR_TOOL, "the server has no %s", address) : 0;
}

int fetch_part_place(struct fetch_part *part, const char *name, unsigned mode, struct err *err)
{
    if (fchmod(part->fd, mode) < 0 || fsync(part->fd) < 0 ||
        renameat(part->dir, part->name, part->dir, name) < 0)
        return err_sys(err, ERR_TOOL, errno, "can't put %s into place", name);
    fsync(part->dir); /* not every file system has that */
    return 0;
}

void fetch_part_discard(struct fetch_part *part)
{
    unlinkat(part->dir, part->name, 0);
}

void fetch_part_close(struct fetch_part *part)
{
    io_close(&part->fd);
    free(part->name);
    part->name = NULL;
}
