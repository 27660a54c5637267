#include "edit_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "io.h"
#include "text_editor_types.h"

enum { LOCK_WAIT_MS = 5000, LOCK_STEP_MS = 5, REOPEN_MAX = 1000, LARGE = 8 << 20 };

static int open_regular(const struct edit_path *p, struct stat *st, struct err *err)
{
    if (S_ISDIR(p->st.st_mode))
        return err_set(err, ERR_TOOL, "The path %s is a directory; only `view` can be used on directories",
                       p->shown);
    /* Looked at before it is opened: opening a device can do things, and a FIFO waits. */
    if (!S_ISREG(p->st.st_mode))
        return err_set(err, ERR_TOOL, "The path %s is %s, not a regular file", p->shown,
                       edit_type(p->st.st_mode));
    int fd = openat(p->dir, p->name, O_RDONLY | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, st) < 0 || !S_ISREG(st->st_mode)) {
        err_set(err, ERR_TOOL, "%s can't be read: %s", p->shown, edit_errno(errno));
        io_close(&fd);
        return -1;
    }
    return fd;
}

int edit_file_open(struct edit_file *f, const struct edit_path *p, struct err *err)
{
    f->fd = open_regular(p, &f->st, err);
    return f->fd < 0 ? -1 : 0;
}

bool edit_lock(int fd, int ms)
{
    while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return true; /* a file system without locks: nobody has it */
        if (ms <= 0)
            return false;
        struct timespec step = {.tv_nsec = LOCK_STEP_MS * 1000000L};
        nanosleep(&step, NULL);
        ms -= LOCK_STEP_MS;
    }
    return true;
}

int edit_write_parts(int fd, struct iovec *parts, size_t n)
{
    while (n > 0) {
        if (parts->iov_len == 0) {
            parts++;
            n--;
            continue;
        }
        ssize_t done = writev(fd, parts, (int)n);
        if (done < 0 && errno != EINTR)
            return -1;
        for (size_t left = done < 0 ? 0 : (size_t)done; left > 0;) {
            size_t step = left < parts->iov_len ? left : parts->iov_len;
            parts->iov_base = (char *)parts->iov_base + step;
            parts->iov_len -= step;
            left -= step;
            if (parts->iov_len == 0 && left > 0) {
                parts++;
                n--;
            }
        }
    }
    return 0;
}

/* The lock is on the inode; another edit may have put a new one in its place while we waited. */
static int open_locked(struct edit_file *f, struct edit_path *p, struct err *err)
{
    for (int i = 0; i < REOPEN_MAX; i++) {
        if (edit_file_open(f, p, err) < 0)
            return -1;
        f->locked = edit_lock(f->fd, LOCK_WAIT_MS);
        if (fstatat(p->dir, p->name, &p->st, AT_SYMLINK_NOFOLLOW) < 0)
            return err_set(err, ERR_TOOL, "The path %s does not exist any more", p->shown);
        if (p->st.st_dev == f->st.st_dev && p->st.st_ino == f->st.st_ino)
            return 0;
        io_close(&f->fd);
    }
    return err_set(err, ERR_TOOL, "%s is being replaced all the time by another program; try again",
                   p->shown);
}

void edit_use_large_pages(const struct buf *b)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t begin = ((uintptr_t)b->data + page - 1) & ~(page - 1),
              end = ((uintptr_t)b->data + b->cap) & ~(page - 1);
    if (b->cap >= LARGE && begin < end)
        madvise((void *)begin, end - begin, MADV_HUGEPAGE);
}

static int too_large(void)
{
    errno = EFBIG;
    return -1;
}

static int read_all(struct edit_file *f)
{
    if (lseek(f->fd, 0, SEEK_SET) < 0 && errno != ESPIPE)
        return -1;
    buf_truncate(&f->data, 0);
    f->data.max = EDIT_FILE_MAX;
    if (buf_reserve(&f->data, (size_t)f->st.st_size) < 0)
        return too_large();
    edit_use_large_pages(&f->data);
    for (;;) {
        size_t room = f->data.cap > f->data.len + 1 ? f->data.cap - f->data.len - 1 : 0;
        if (room == 0) {
            if (buf_reserve(&f->data, 65536) < 0)
                return too_large();
            continue;
        }
        /* Not io_read_all: a file that has nothing to say now (/proc/kmsg) must not be waited for. */
        ssize_t n = read(f->fd, f->data.data + f->data.len, room);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -1 : 0;
        f->data.len += (size_t)n;
    }
}

bool edit_same_content(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

int edit_file_read(struct edit_file *f, const struct edit_path *p, struct err *err)
{
    for (int i = 0; i < 3; i++) {
        struct stat now;
        if (fstat(f->fd, &f->st) < 0 || read_all(f) < 0) {
            if (errno == EFBIG)
                return err_set(err, ERR_TOOL,
                               "%s is larger than %llu MiB, which is too large to be edited here; use a "
                               "stream editor in a shell",
                               p->shown, EDIT_FILE_MAX >> 20);
            return err_set(err, ERR_TOOL, "%s can't be read: %s", p->shown, edit_errno(errno));
        }
        if (f->data.len > 0)
            f->data.data[f->data.len] = '\0';
        if ((unsigned long long)f->st.st_size == f->data.len)
            return 0;
        if (fstat(f->fd, &now) == 0 && edit_same_content(&f->st, &now)) {
            f->pseudo = true;
            return 0;
        }
    }
    return err_set(err, ERR_TOOL, "%s is being written by another program; try again when that is done",
                   p->shown);
}

/* The flag takes a kernel of 5.8, and there are sandboxes that refuse what they don't know with EPERM. */
static bool is_writable(const struct edit_path *p)
{
    return faccessat(p->dir, p->name, W_OK, AT_EACCESS) == 0 ||
           (errno == EPERM && faccessat(p->dir, p->name, W_OK, 0) == 0);
}

int edit_file_load(struct edit_file *f, struct edit_path *p, struct err *err)
{
    if (open_locked(f, p, err) < 0)
        return -1;
    if (!is_writable(p))
        return err_set(err, ERR_TOOL, "%s can't be written: %s", p->shown, edit_errno(errno));
    return edit_file_read(f, p, err);
}

void edit_file_release(struct edit_file *f)
{
    io_close(&f->fd);
    buf_release(&f->data);
    *f = (struct edit_file)EDIT_FILE_INIT;
}
