#include "job_record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "io.h"
#include "ipc.h"
#include "mem.h"

#define KEPT_S 3600
#define REPEATED_S 300 /* the end can be asked for again at least for so long */
#define PREFIX "ended-"

void record_release(struct record *r)
{
    buf_release(&r->text[0]);
    buf_release(&r->text[1]);
    free(r->marks);
    r->marks = NULL;
    r->n_marks = 0;
}

void record_acknowledge(struct record *r, long long seq)
{
    size_t n = 0;
    if (seq > r->seq)
        seq = r->seq;
    while (n < r->n_marks && r->marks[n].seq <= seq)
        n++;
    if (n == 0)
        return;
    for (int i = 0; i < 2; i++) {
        size_t freed = (size_t)(r->marks[n - 1].end[i] - r->base[i]);
        buf_consume(&r->text[i], freed);
        buf_shrink(&r->text[i]);
        r->base[i] += freed;
    }
    r->n_marks -= n;
    memmove(r->marks, r->marks + n, r->n_marks * sizeof *r->marks);
}

void record_mark(struct record *r, long long seq)
{
    unsigned long long end[2] = {r->base[0] + r->text[0].len, r->base[1] + r->text[1].len};
    bool any = r->text[0].len > 0 || r->text[1].len > 0;
    if (!any || (r->n_marks > 0 && memcmp(r->marks[r->n_marks - 1].end, end, sizeof end) == 0))
        return;
    if ((r->n_marks & (r->n_marks - 1)) == 0)
        r->marks = mem_realloc(r->marks, (r->n_marks ? r->n_marks * 2 : 1) * sizeof *r->marks);
    r->marks[r->n_marks++] = (struct record_mark){seq, {end[0], end[1]}};
}

void record_count(struct record *r)
{
    record_mark(r, ++r->seq);
    r->told = r->told || r->end.ended;
}

/* ---- the file: a head, the marks, the texts ---- */

struct head {
    long long seq;
    struct record_end end;
    bool told;
    unsigned long long base[2], freed[2]; /* of the texts in the file, the first bytes are acknowledged */
    size_t len[2], n_marks;
};

/* With a dot in front, it is nobody's socket; with our build's and container's ending stop-server removes it.
 */
static void file_name(char name[1 + IPC_NAME_MAX], pid_t pid)
{
    char owner[32];
    snprintf(owner, sizeof owner, PREFIX "%ld", (long)pid);
    name[0] = '.';
    ipc_name(name + 1, owner);
}

static int open_file(int dirfd, pid_t pid, int flags)
{
    char name[1 + IPC_NAME_MAX];
    file_name(name, pid);
    return openat(dirfd, name, flags | O_NOFOLLOW | O_CLOEXEC, 0600);
}

static int write_file(const struct record *r, int fd)
{
    struct head h = {
        .seq = r->seq,
        .end = r->end,
        .told = r->told,
        .base = {r->base[0], r->base[1]},
        .len = {r->text[0].len, r->text[1].len},
        .n_marks = r->n_marks,
    };
    return io_write_all(fd, &h, sizeof h) == 0 &&
                   io_write_all(fd, r->marks, r->n_marks * sizeof *r->marks) == 0 &&
                   io_write_all(fd, r->text[0].data, r->text[0].len) == 0 &&
                   io_write_all(fd, r->text[1].data, r->text[1].len) == 0
               ? 0
               : -1;
}

int record_store(const struct record *r, int dirfd, struct err *err)
{
    char name[1 + IPC_NAME_MAX], temporary[sizeof name + 1];
    file_name(name, r->pid);
    snprintf(temporary, sizeof temporary, ".%s", name);
    int fd FD_AUTO = openat(dirfd, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd >= 0 && write_file(r, fd) == 0 && renameat(dirfd, temporary, dirfd, name) == 0)
        return 0;
    err_sys(err, ERR_TOOL, errno, "cannot write %s", name);
    unlinkat(dirfd, temporary, 0);
    return -1;
}

static bool read_head(int fd, struct head *h)
{
    struct stat st;
    return fd >= 0 && pread(fd, h, sizeof *h, 0) == sizeof *h && fstat(fd, &st) == 0 &&
           (unsigned long long)st.st_size ==
               sizeof *h + h->n_marks * sizeof(struct record_mark) + h->len[0] + h->len[1];
}

static void take_head(struct record *r, pid_t pid, const struct head *h)
{
    r->pid = pid;
    r->seq = h->seq;
    r->end = h->end;
    r->told = h->told;
}

bool record_load(struct record *r, int dirfd, pid_t pid)
{
    struct head h;
    struct buf text BUF_AUTO = BUF_INIT;
    int fd FD_AUTO = open_file(dirfd, pid, O_RDONLY);
    if (!read_head(fd, &h) || io_read_all(fd, &text) < 0)
        return false;
    const char *at = text.data + sizeof h;
    take_head(r, pid, &h);
    r->marks = mem_alloc(h.n_marks * sizeof *r->marks + 1);
    for (size_t i = 0; i < h.n_marks; i++, at += sizeof *r->marks) {
        memcpy(&r->marks[r->n_marks], at, sizeof *r->marks);
        if (r->marks[r->n_marks].end[0] > h.base[0] + h.freed[0] ||
            r->marks[r->n_marks].end[1] > h.base[1] + h.freed[1])
            r->n_marks++;
    }
    for (int i = 0; i < 2; at += h.len[i++]) {
        r->base[i] = h.base[i] + h.freed[i];
        buf_add(&r->text[i], at + h.freed[i], h.len[i] - (size_t)h.freed[i]);
    }
    return true;
}

/* In place: a write within the file's first page, which the next reader sees whole. */
void record_update(const struct record *r, int dirfd)
{
    struct head h;
    int fd FD_AUTO = open_file(dirfd, r->pid, O_RDWR);
    if (!read_head(fd, &h))
        return;
    h.seq = r->seq;
    h.told = r->told;
    h.freed[0] = r->base[0] - h.base[0];
    h.freed[1] = r->base[1] - h.base[1];
    if (pwrite(fd, &h, sizeof h, 0) < 0) {
        /* then what was acknowledged may come once more */
    }
}

void record_remove(int dirfd, pid_t pid)
{
    char name[1 + IPC_NAME_MAX];
    file_name(name, pid);
    unlinkat(dirfd, name, 0);
}

static long long age_s(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 ? (long long)time(NULL) - st.st_ctime : 0;
}

bool record_gives_way(int dirfd, pid_t pid, bool told_will_do)
{
    struct head h;
    int fd FD_AUTO = open_file(dirfd, pid, O_RDONLY);
    if (fd < 0 || !read_head(fd, &h))
        return true;
    long long age = age_s(fd);
    return age > KEPT_S || (h.told && (told_will_do || age > REPEATED_S));
}

struct sweep {
    int dirfd;
    void (*fn)(void *arg, const struct record *r);
    void *arg;
};

static void sweep_one(void *arg, const char *name)
{
    const struct sweep *s = arg;
    struct stat st;
    if (fstatat(s->dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
        (long long)time(NULL) - st.st_ctime > KEPT_S)
        unlinkat(s->dirfd, name, 0);
}

void record_sweep(int dirfd)
{
    struct sweep s = {.dirfd = dirfd};
    ipc_each_file(dirfd, "." PREFIX, sweep_one, &s);
    ipc_each_file(dirfd, "." JOB_PREFIX, sweep_one, &s); /* sockets of jobs that have ended */
}

static void visit(void *arg, const char *name)
{
    const struct sweep *s = arg;
    struct head h;
    struct record r = RECORD_INIT;
    pid_t pid = (pid_t)strtol(name + sizeof "." PREFIX - 1, NULL, 10);
    int fd FD_AUTO = open_file(s->dirfd, pid, O_RDONLY);
    if (!read_head(fd, &h))
        return;
    take_head(&r, pid, &h);
    s->fn(s->arg, &r);
}

void record_each(int dirfd, void (*fn)(void *arg, const struct record *r), void *arg)
{
    struct sweep s = {dirfd, fn, arg};
    ipc_each_file(dirfd, "." PREFIX, visit, &s);
}
