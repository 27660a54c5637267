#include "edit_write.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "edit_beside.h"
#include "io.h"

/* A limit on the size of files ends a process by a signal unless it is ignored; then the write says EFBIG. */
static void size_signal(struct sigaction *saved, bool restore)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigaction(SIGXFSZ, restore ? saved : &ignore, restore ? NULL : saved);
}

static int refuse(const struct edit_path *p, int errnum, struct err *err)
{
    return err_set(err, ERR_TOOL, "%s could not be written and is unchanged: %s", p->shown,
                   edit_errno(errnum));
}

static bool is_unchanged(const struct edit_file *f, const struct edit_path *p)
{
    struct stat st;
    return fstatat(p->dir, p->name, &st, AT_SYMLINK_NOFOLLOW) == 0 && edit_same_content(&st, &f->st);
}

static int refuse_changed(const struct edit_path *p, struct undo_store *undo, struct err *err)
{
    undo_failed(undo, false);
    return err_set(
        err, ERR_TOOL,
        "%s was changed by another program meanwhile; nothing was written. View it again and repeat the edit",
        p->shown);
}

static struct undo_change change_of(const struct edit_file *f, const struct edit_path *p,
                                    const struct splice *s, enum entry_kind kind)
{
    return (struct undo_change){.kind = kind,
                                .path = p,
                                .old = buf_str(&f->data),
                                .n_old = f->data.len,
                                .splice = *s,
                                .before = &f->st};
}

/* 0; 1: it was changed meanwhile; -1 with errno. Where the history has the old file itself, the two can be
 * swapped: then whatever is there at that moment is seen. */
static int take_its_place(struct beside *b, const struct edit_file *f, const struct edit_path *p, bool swap)
{
    int rc = swap ? beside_exchange(b, p->dir, p->name, &f->st) : -1;
    if (rc >= 0)
        return rc;
    return is_unchanged(f, p) ? beside_rename(b, p->dir, p->name) : 1;
}

/* So that a loss of power soon afterwards doesn't leave an empty file: what ext4 does by itself when a file
 * is renamed over another. Nobody waits for the disk. One edit after the other, on the other hand, would wait
 * when the history drops what is still on its way there; and a large file keeps the disk busy. */
static void begin_writeback(int fd, const struct edit_file *f)
{
    enum { SIZE_MAX_AT_ONCE = 4 << 20, REST_S = 2 };
    if (f->data.len <= SIZE_MAX_AT_ONCE && time(NULL) - f->st.st_mtim.tv_sec >= REST_S)
        sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE);
}

/* Writes the new content and makes it the file; as write_beside. */
static int replace(struct beside *b, struct edit_file *f, const struct edit_path *p, const struct splice *s,
                   enum entry_kind kind, struct undo_store *undo, struct err *err)
{
    const char *old = buf_str(&f->data);
    struct iovec parts[] = {{(void *)old, s->at},
                            {(void *)s->put, s->n_put},
                            {(void *)(old + s->at + s->cut), f->data.len - s->at - s->cut}};
    if (edit_write_parts(b->fd, parts, 3) < 0)
        return refuse(p, errno, err);
    if (beside_finish(b, &f->st) < 0)
        return errno == EPERM ? 1 : refuse(p, errno, err);
    struct undo_change change = change_of(f, p, s, kind);
    change.after = &b->st;
    if (undo_prepare(undo, &change, err) < 0)
        return -1;
    int rc = take_its_place(b, f, p, undo->linked);
    if (rc == 0) {
        if (undo->linked)
            begin_writeback(b->fd, f);
        undo_done(undo);
        return 0;
    }
    if (rc > 0)
        return refuse_changed(p, undo, err);
    int failed = errno;
    undo_failed(undo, false);
    /* A mount point (as /etc/hosts in containers), or somebody else's file in a sticky directory. */
    if (failed == EBUSY || failed == EPERM || failed == EACCES || failed == EXDEV)
        return 1;
    return refuse(p, failed, err);
}

static bool has_links(const struct edit_file *f, const struct edit_path *p, enum entry_kind kind,
                      struct undo_store *undo)
{
    struct stat st = f->st;
    if (st.st_nlink == 2) {
        /* The other one may be what an edit has left that was killed. An undo has seen to that already. */
        if (kind != ENTRY_UNDO)
            undo_settle(undo, p, f);
        fstat(f->fd, &st);
    }
    return st.st_nlink != 1;
}

/* 0: done; -1: refused; 1: this file has to be written in place. */
static int write_beside(struct edit_file *f, const struct edit_path *p, const struct splice *s,
                        enum entry_kind kind, struct undo_store *undo, struct err *err)
{
    struct beside b BESIDE_AUTO = BESIDE_INIT;
    if (f->pseudo || has_links(f, p, kind, undo))
        return 1;
    int rc = beside_open(&b, p->dir, p->name, 0600);
    if (rc == 0)
        rc = beside_take_after(&b, f->fd, &f->st);
    if (rc < 0)
        return refuse(p, errno, err);
    return rc > 0 ? rc : replace(&b, f, p, s, kind, undo, err);
}

/* *at moves with what has been written. */
static int write_at(int fd, const char *s, size_t n, size_t *at)
{
    while (n > 0) {
        ssize_t done = pwrite(fd, s, n, (off_t)*at);
        if (done < 0 && errno != EINTR)
            return -1;
        if (done > 0) {
            s += done;
            n -= (size_t)done;
            *at += (size_t)done;
        }
    }
    return 0;
}

/* From the first byte that changes to the last one, in order: journal_recover reckons with that. *reached:
 * how far it came. */
static int put_in_place(int fd, const char *old, size_t n_old, const struct splice *s, size_t *reached)
{
    *reached = s->at;
    if (write_at(fd, s->put, s->n_put, reached) < 0)
        return -1;
    if (s->n_put == s->cut)
        return 0;
    if (write_at(fd, old + s->at + s->cut, n_old - s->at - s->cut, reached) < 0)
        return -1;
    return s->n_put < s->cut ? ftruncate(fd, (off_t)*reached) : 0;
}

/* Puts the old content back as far as it was overwritten, and gives back what was reserved. False when it
 * couldn't. Keeps errno. */
static bool take_back(int fd, const struct edit_file *f, size_t from, size_t reached)
{
    int failed = errno;
    size_t n_old = f->data.len, end = reached < n_old ? reached : n_old, at = from;
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, f->st.st_mtim};
    bool done =
        write_at(fd, buf_str(&f->data) + from, end - from, &at) == 0 && ftruncate(fd, (off_t)n_old) == 0;
    if (done)
        futimens(fd, times); /* it hasn't changed */
    errno = failed;
    return done;
}

/* So that a full disk is met before anything is overwritten. Where the file system can't tell, the write
 * will. */
static int reserve(int fd, size_t n_old, const struct splice *s)
{
    size_t end = n_old - s->cut + s->n_put;
    if (end < n_old)
        end = n_old;
    if (end == s->at || fallocate(fd, FALLOC_FL_KEEP_SIZE, (off_t)s->at, (off_t)(end - s->at)) == 0)
        return 0;
    return errno == ENOSPC || errno == EDQUOT || errno == EFBIG ? -1 : 0;
}

static int open_in_place(const struct edit_file *f, const struct edit_path *p)
{
    struct stat st;
    int fd = openat(p->dir, p->name, O_WRONLY | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -1;
    if (fstat(fd, &st) == 0 && st.st_dev == f->st.st_dev && st.st_ino == f->st.st_ino)
        return fd;
    close(fd);
    errno = ESTALE;
    return -1;
}

/* Files that take settings expect the whole of it in one write, at the begin. */
static int write_pseudo(int fd, const char *old, size_t n_old, const struct splice *s)
{
    struct buf whole BUF_AUTO = BUF_INIT;
    buf_add(&whole, old, s->at);
    buf_add(&whole, s->put, s->n_put);
    buf_add(&whole, old + s->at + s->cut, n_old - s->at - s->cut);
    ssize_t n = write(fd, buf_str(&whole), whole.len);
    if (n >= 0 && (size_t)n != whole.len)
        errno = EINVAL;
    return n < 0 || (size_t)n != whole.len ? -1 : 0;
}

/* *mixed: it failed, and the old content couldn't be put back. */
static int overwrite(int fd, const struct edit_file *f, const struct splice *s, bool *mixed)
{
    size_t reached = s->at;
    if (reserve(fd, f->data.len, s) == 0 &&
        put_in_place(fd, buf_str(&f->data), f->data.len, s, &reached) == 0)
        return 0;
    *mixed = !take_back(fd, f, s->at, reached);
    return -1;
}

static int write_in_place(struct edit_file *f, const struct edit_path *p, const struct splice *s,
                          enum entry_kind kind, struct undo_store *undo, struct err *err)
{
    if (!f->locked)
        return err_set(err, ERR_TOOL, "%s is locked by another process and was not edited; try again later",
                       p->shown);
    int fd FD_AUTO = open_in_place(f, p);
    if (fd < 0)
        return refuse(p, errno, err);
    const char *old = buf_str(&f->data);
    struct undo_change change = change_of(f, p, s, kind);
    change.after = &f->st;
    change.in_place = !f->pseudo;
    if (undo_prepare(undo, &change, err) < 0)
        return -1;
    if (!f->pseudo && !is_unchanged(f, p))
        return refuse_changed(p, undo, err);
    bool mixed = false;
    int rc = f->pseudo ? write_pseudo(fd, old, f->data.len, s) : overwrite(fd, f, s, &mixed);
    if (rc == 0) {
        undo_done(undo);
        if (f->st.st_mode & (S_ISUID | S_ISGID))
            fchmod(fd, f->st.st_mode & 07777); /* which a write takes away */
        return 0;
    }
    int failed = errno;
    undo_failed(undo, mixed);
    if (mixed)
        return err_set(
            err, ERR_TOOL,
            "%s could not be written (%s) and not be put back; the next call for this file tries again",
            p->shown, edit_errno(failed));
    return refuse(p, failed, err);
}

int edit_write(struct edit_file *f, const struct edit_path *p, const struct splice *s, enum entry_kind kind,
               struct undo_store *undo, struct err *err)
{
    struct sigaction saved;
    size_signal(&saved, false);
    int rc = write_beside(f, p, s, kind, undo, err);
    if (rc > 0) {
        if (undo->dir >= 0)
            undo->why.msg[0] = '\0'; /* of the first try */
        rc = write_in_place(f, p, s, kind, undo, err);
    }
    size_signal(&saved, true);
    return rc;
}

int edit_restore(struct edit_file *f, const struct edit_path *p, const struct splice *s)
{
    struct sigaction saved;
    int fd FD_AUTO = open_in_place(f, p);
    if (fd < 0)
        return -1;
    size_signal(&saved, false);
    size_t reached;
    int rc = put_in_place(fd, buf_str(&f->data), f->data.len, s, &reached);
    size_signal(&saved, true);
    return rc;
}

/* As edit_create, but for what has no message yet: that is -1 with errno, and *told false. */
static int create(const struct edit_path *p, const char *text, size_t n, struct undo_store *undo, bool *told,
                  struct err *err)
{
    struct beside b BESIDE_AUTO = BESIDE_INIT;
    int rc = beside_open(&b, p->dir, p->name, 0666);
    if (rc != 0)
        return -1;
    struct iovec part = {(void *)text, n};
    if (edit_write_parts(b.fd, &part, 1) < 0 || beside_finish(&b, NULL) < 0)
        return -1;
    struct undo_change change = {
        .kind = ENTRY_CREATED, .path = p, .old = "", .splice = {.put = text, .n_put = n}, .after = &b.st};
    if (undo_prepare(undo, &change, err) < 0) {
        *told = true;
        return -1;
    }
    rc = beside_link(&b, p->dir, p->name);
    int failed = errno;
    if (rc == 0)
        undo_done(undo);
    else
        undo_failed(undo, false);
    errno = failed;
    return rc;
}

int edit_create(const struct edit_path *p, const char *text, size_t n, struct undo_store *undo,
                struct err *err)
{
    struct sigaction saved;
    size_signal(&saved, false);
    bool told = false;
    int rc = create(p, text, n, undo, &told, err);
    int failed = errno;
    size_signal(&saved, true);
    if (rc == 0 || told)
        return rc;
    if (failed == EEXIST)
        return err_set(err, ERR_TOOL, "The path %s exists already; `create` overwrites nothing", p->shown);
    return err_set(err, ERR_TOOL, "%s could not be created: %s", p->shown, edit_errno(failed));
}
