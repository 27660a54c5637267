#include "job_shelf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "io.h"
#include "ipc.h"

#define SLOT 512u  /* bytes of a record in the table */
#define PAGE 4096u /* of the table, which takes room or doesn't */
#define TABLE "ended"
#define FILES "ended-"
#define PIDS_END 0x400000 /* no kernel gives away this number, or a higher one */

/* ---- time ---- */

long long shelf_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t);
    return 1 + (long long)t.tv_sec;
}

long long shelf_age(long long asked)
{
    long long now = shelf_now();
    return asked > 0 && asked <= now ? now - asked : SHELF_KEPT_S + 1;
}

/* ---- finding ---- */

/* A regular file of this user's; nothing else is waited for, or read. */
static int open_own(int dirfd, const char *name, int flags)
{
    struct stat st;
    int fd = openat(dirfd, name, flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600);
    if (fd >= 0 && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid())) {
        io_close(&fd);
        errno = EPERM;
    }
    return fd;
}

/* With a dot in front, it is nobody's socket; with our build's and container's ending stop-server removes it.
 */
static int open_named(int dirfd, const char *owner, int flags)
{
    char name[1 + IPC_NAME_MAX] = ".";
    ipc_name(name + 1, owner);
    return open_own(dirfd, name, flags);
}

static void file_owner(char owner[32], pid_t pid)
{
    snprintf(owner, 32, FILES "%ld", (long)pid);
}

static off_t slot_of(pid_t pid)
{
    return (off_t)pid * (off_t)SLOT;
}

static bool has_record(int fd, off_t at)
{
    long long asked;
    return pread(fd, &asked, sizeof asked, at) == sizeof asked && asked != 0;
}

/* What the file has from there on, within the slot. */
static size_t slot_size(off_t file_size, off_t at)
{
    off_t left = file_size > at ? file_size - at : 0;
    return left < (off_t)SLOT ? (size_t)left : SLOT;
}

static bool find_slot(struct shelf *s, int dirfd, pid_t pid)
{
    struct stat st;
    *s = (struct shelf){.fd = open_named(dirfd, TABLE, O_RDWR), .at = slot_of(pid)};
    if (s->fd >= 0 && has_record(s->fd, s->at) && flock(s->fd, LOCK_EX) == 0 && has_record(s->fd, s->at) &&
        fstat(s->fd, &st) == 0) {
        s->size = slot_size(st.st_size, s->at);
        return true;
    }
    io_close(&s->fd);
    return false;
}

static bool find_file(struct shelf *s, int dirfd, pid_t pid)
{
    char owner[32];
    struct stat st;
    file_owner(owner, pid);
    *s = (struct shelf){.fd = open_named(dirfd, owner, O_RDWR)};
    if (s->fd >= 0 && flock(s->fd, LOCK_EX) == 0 && fstat(s->fd, &st) == 0) {
        s->size = (size_t)st.st_size;
        return true;
    }
    io_close(&s->fd);
    return false;
}

bool shelf_find(struct shelf *s, int dirfd, pid_t pid)
{
    return find_slot(s, dirfd, pid) || find_file(s, dirfd, pid);
}

void shelf_close(struct shelf *s)
{
    io_close(&s->fd);
}

bool shelf_is_in(int dirfd, const char *name)
{
    struct stat st;
    size_t n = sizeof "." TABLE - 1;
    return strncmp(name, "." TABLE, n) == 0 && (name[n] == '.' || name[n] == '-') &&
           fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
           st.st_uid == geteuid() && time(NULL) - st.st_mtime <= SHELF_KEPT_S;
}

/* ---- writing ---- */

static void clear_slot(int fd, off_t at)
{
    static const long long none = 0;
    if (pwrite(fd, &none, sizeof none, at) < 0) {
        /* it stays until it is old, or another job of that pid ends */
    }
}

/* By one write, so that whoever dies leaves all of it or nothing. */
static int put_in_table(int dirfd, pid_t pid, const struct shelf_piece *pieces, size_t n)
{
    struct buf text BUF_AUTO = BUF_INIT;
    for (size_t i = 0; i < n; i++) {
        buf_add(&text, pieces[i].data, pieces[i].n);
        if (pieces[i].more)
            fifo_peek(pieces[i].more, pieces[i].more->len, &text);
    }
    int fd FD_AUTO = open_named(dirfd, TABLE, O_RDWR | O_CREAT);
    if (fd < 0 || flock(fd, LOCK_EX) < 0)
        return -1;
    ssize_t written = pwrite(fd, text.data, text.len, slot_of(pid));
    if (written == (ssize_t)text.len)
        return 0;
    if (written > 0)
        clear_slot(fd, slot_of(pid));
    return -1;
}

static int put_in_file(int dirfd, pid_t pid, const struct shelf_piece *pieces, size_t n, struct err *err)
{
    char owner[32], name[1 + IPC_NAME_MAX] = ".", temporary[sizeof name + 1];
    file_owner(owner, pid);
    ipc_name(name + 1, owner);
    snprintf(temporary, sizeof temporary, ".%s", name);
    int fd FD_AUTO = open_own(dirfd, temporary, O_WRONLY | O_CREAT | O_TRUNC);
    int failed = fd < 0;
    for (size_t i = 0; i < n && !failed; i++)
        failed = io_write_all(fd, pieces[i].data, pieces[i].n) < 0 ||
                 (pieces[i].more && fifo_copy(pieces[i].more, fd) < 0);
    if (!failed && renameat(dirfd, temporary, dirfd, name) == 0)
        return 0;
    err_sys(err, ERR_TOOL, errno, "cannot write %s", name);
    unlinkat(dirfd, temporary, 0);
    return -1;
}

int shelf_put(int dirfd, pid_t pid, const struct shelf_piece *pieces, size_t n, struct err *err)
{
    size_t size = 0;
    for (size_t i = 0; i < n; i++)
        size += pieces[i].n + (pieces[i].more ? pieces[i].more->len : 0);
    if (size <= SLOT && put_in_table(dirfd, pid, pieces, n) == 0)
        return 0;
    return put_in_file(dirfd, pid, pieces, n, err);
}

void shelf_remove(int dirfd, pid_t pid)
{
    struct shelf s;
    char owner[32], name[1 + IPC_NAME_MAX] = ".";
    if (find_slot(&s, dirfd, pid))
        clear_slot(s.fd, s.at);
    shelf_close(&s);
    file_owner(owner, pid);
    ipc_name(name + 1, owner);
    unlinkat(dirfd, name, 0);
}

/* ---- all of them ---- */

/* The next page with something in it, at or after `at`; -1: there is none, or none that is a pid's. */
static off_t next_page(int fd, off_t at)
{
    struct stat st;
    off_t data = lseek(fd, at, SEEK_DATA);
    if (data < 0 && errno == EINVAL) /* it can't say */
        data = fstat(fd, &st) == 0 && at < st.st_size ? at : -1;
    return data < 0 || data >= slot_of(PIDS_END) ? -1 : data - data % (off_t)PAGE;
}

static long long asked_in(const char *slot)
{
    long long asked;
    memcpy(&asked, slot, sizeof asked);
    return asked;
}

struct visit {
    int dirfd;
    void (*fn)(void *arg, pid_t pid, const struct shelf *s);
    void *arg;
};

/* `n`: bytes of it that there are. */
static void visit_page(const struct visit *v, int fd, off_t page, const char *data, off_t n)
{
    for (off_t at = 0; at < (off_t)PAGE; at += (off_t)SLOT) {
        struct shelf s = {fd, page + at, slot_size(n, at)};
        if (asked_in(data + at) != 0)
            v->fn(v->arg, (pid_t)(s.at / (off_t)SLOT), &s);
    }
}

static void visit_file(void *arg, const char *name)
{
    const struct visit *v = arg;
    struct shelf s = {.fd = -1};
    long pid = strtol(name + sizeof "." FILES - 1, NULL, 10);
    if (pid > 0 && pid < PIDS_END && find_file(&s, v->dirfd, (pid_t)pid))
        v->fn(v->arg, (pid_t)pid, &s);
    shelf_close(&s);
}

void shelf_each(int dirfd, void (*fn)(void *arg, pid_t pid, const struct shelf *s), void *arg)
{
    struct visit v = {dirfd, fn, arg};
    int fd FD_AUTO = open_named(dirfd, TABLE, O_RDONLY);
    if (fd >= 0 && flock(fd, LOCK_SH) < 0)
        io_close(&fd);
    for (off_t page = 0; fd >= 0 && (page = next_page(fd, page)) >= 0; page += (off_t)PAGE) {
        char data[PAGE] = {0};
        ssize_t n = pread(fd, data, sizeof data, page);
        if (n > 0)
            visit_page(&v, fd, page, data, (off_t)n);
    }
    ipc_each_file(dirfd, "." FILES, visit_file, &v);
}

/* ---- sweeping ---- */

/* A page without records is given back. */
static void sweep_page(int fd, off_t page)
{
    char data[PAGE] = {0};
    bool any = false;
    if (pread(fd, data, sizeof data, page) <= 0)
        return;
    for (off_t at = 0; at < (off_t)PAGE; at += (off_t)SLOT) {
        long long asked = asked_in(data + at);
        bool old = asked != 0 && shelf_age(asked) > SHELF_KEPT_S;
        if (old)
            clear_slot(fd, page + at);
        any = any || (asked != 0 && !old);
    }
    if (!any)
        fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, page, (off_t)PAGE);
}

static void sweep_file(void *arg, const char *name)
{
    int dirfd = *(int *)arg;
    long long asked;
    int fd FD_AUTO = open_own(dirfd, name, O_RDONLY);
    if (fd >= 0 && pread(fd, &asked, sizeof asked, 0) == sizeof asked && shelf_age(asked) > SHELF_KEPT_S)
        unlinkat(dirfd, name, 0);
}

void shelf_sweep(int dirfd)
{
    int fd FD_AUTO = open_named(dirfd, TABLE, O_RDWR);
    if (fd >= 0 && flock(fd, LOCK_EX) == 0)
        for (off_t page = 0; (page = next_page(fd, page)) >= 0; page += (off_t)PAGE)
            sweep_page(fd, page);
    ipc_each_file(dirfd, "." FILES, sweep_file, &dirfd);
}
