/* The file of a job that has ended: a head, the marks, and for each stream all bytes that are not known to
 * have arrived. Answers turn them into text anew each time; what changes with an answer is in the head and
 * the marks. */
#include "job_stored.h"

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
#include "job_text.h"
#include "mem.h"

#define KEPT_S 3600
#define REPEATED_S 300 /* the end can be asked for again at least for so long */
#define PREFIX "ended-"

/* Offsets count from the first byte in the file. */
struct head {
    long long seq;
    struct record_end end;
    bool told, latin1;
    size_t n_marks, max_marks;
    unsigned long long acknowledged[2], given[2], len[2];
};

struct stored {
    int fd;
    struct head head;
    struct record_mark *marks;
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

/* ---- writing ---- */

/* Text that has been given, as the bytes that it came from. Where they were no UTF-8 they are the text's own,
 * which comes out as the same text again. */
static void given_bytes(struct buf *bytes, const struct record *r, int i, bool latin1)
{
    buf_add(bytes, r->text[i].data, r->text[i].len);
    if (latin1)
        bytes->len = text_to_latin1(bytes->data, bytes->len);
}

static unsigned long long mark_offset(const struct record *r, const struct record_mark *m, int i, bool latin1)
{
    size_t n = (size_t)(m->end[i] - r->base[i]);
    return latin1 ? text_chars(r->text[i].data, n) : n;
}

static int write_file(const struct record *r, const struct fifo *const raw[2], bool latin1, int fd)
{
    struct buf given[2] = {BUF_INIT, BUF_INIT};
    struct head h = {.seq = r->seq, .end = r->end, .told = r->told, .latin1 = latin1, .n_marks = r->n_marks};
    h.max_marks = h.n_marks + 4;
    for (int i = 0; i < 2; i++) {
        given_bytes(&given[i], r, i, latin1);
        h.given[i] = given[i].len;
        h.len[i] = given[i].len + raw[i]->len;
        h.max_marks += raw[i]->len / (JOB_ANSWER_MAX / 2);
    }
    struct record_mark *marks MEM_AUTO = mem_zalloc(h.max_marks * sizeof *marks);
    for (size_t m = 0; m < h.n_marks; m++)
        marks[m] = (struct record_mark){
            r->marks[m].seq,
            {mark_offset(r, &r->marks[m], 0, latin1), mark_offset(r, &r->marks[m], 1, latin1)}};
    int failed = io_write_all(fd, &h, sizeof h) + io_write_all(fd, marks, h.max_marks * sizeof *marks);
    for (int i = 0; i < 2; i++) {
        failed += io_write_all(fd, given[i].data, given[i].len) + fifo_copy(raw[i], fd);
        buf_release(&given[i]);
    }
    return failed == 0 ? 0 : -1;
}

int record_store(const struct record *r, const struct fifo *const raw[2], bool latin1, int dirfd,
                 struct err *err)
{
    char name[1 + IPC_NAME_MAX], temporary[sizeof name + 1];
    file_name(name, r->pid);
    snprintf(temporary, sizeof temporary, ".%s", name);
    int fd FD_AUTO = openat(dirfd, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd >= 0 && write_file(r, raw, latin1, fd) == 0 && renameat(dirfd, temporary, dirfd, name) == 0)
        return 0;
    err_sys(err, ERR_TOOL, errno, "cannot write %s", name);
    unlinkat(dirfd, temporary, 0);
    return -1;
}

/* ---- answering ---- */

static bool read_head(int fd, struct head *h)
{
    struct stat st;
    return fd >= 0 && pread(fd, h, sizeof *h, 0) == sizeof *h && fstat(fd, &st) == 0 &&
           (unsigned long long)st.st_size ==
               sizeof *h + h->max_marks * sizeof(struct record_mark) + h->len[0] + h->len[1];
}

static size_t marks_size(const struct head *h)
{
    return h->max_marks * sizeof(struct record_mark);
}

/* The keeper that has left it may still be answering. */
static bool open_stored(struct stored *s, int dirfd, pid_t pid)
{
    s->fd = open_file(dirfd, pid, O_RDWR);
    if (s->fd < 0 || flock(s->fd, LOCK_EX) < 0 || !read_head(s->fd, &s->head)) {
        io_close(&s->fd);
        return false;
    }
    size_t size = marks_size(&s->head);
    s->marks = mem_alloc(size);
    if (pread(s->fd, s->marks, size, sizeof s->head) == (ssize_t)size)
        return true;
    free(s->marks);
    io_close(&s->fd);
    return false;
}

/* What was acknowledged may come once more where this can't be written. */
static void close_stored(struct stored *s)
{
    if (pwrite(s->fd, &s->head, sizeof s->head, 0) < 0 ||
        pwrite(s->fd, s->marks, marks_size(&s->head), sizeof s->head) < 0) {
        /* no more than that */
    }
    free(s->marks);
    io_close(&s->fd);
}

static void acknowledge(struct stored *s, long long seq)
{
    struct head *h = &s->head;
    size_t n = 0;
    while (n < h->n_marks && s->marks[n].seq <= seq)
        n++;
    if (n == 0)
        return;
    for (int i = 0; i < 2; i++)
        h->acknowledged[i] = s->marks[n - 1].end[i];
    h->n_marks -= n;
    memmove(s->marks, s->marks + n, h->n_marks * sizeof *s->marks);
}

/* Appends the text of a stretch; how many of its bytes that took: the beginning of a character may be left.
 */
static size_t read_text(const struct stored *s, int i, unsigned long long from, size_t n, struct buf *text)
{
    const struct head *h = &s->head;
    struct buf bytes BUF_AUTO = BUF_INIT;
    unsigned long long at = sizeof *h + marks_size(h) + (i == 1 ? h->len[0] : 0) + from;
    buf_reserve(&bytes, n);
    while (bytes.len < n) {
        ssize_t got = pread(s->fd, bytes.data + bytes.len, n - bytes.len, (off_t)(at + bytes.len));
        if (got <= 0)
            break;
        bytes.len += (size_t)got;
    }
    return text_add(text, bytes.data, bytes.len, h->latin1, from + bytes.len == h->len[i]);
}

static void give(struct stored *s, int i, struct buf *text)
{
    struct head *h = &s->head;
    read_text(s, i, h->acknowledged[i], (size_t)(h->given[i] - h->acknowledged[i]), text);
    struct text_room room = text_room(text);
    while (h->given[i] < h->len[i] && room.bytes > 0 && room.json > 0 && h->n_marks < h->max_marks) {
        unsigned long long left = h->len[i] - h->given[i];
        size_t before = text->len;
        size_t step = text_step(&room, left);
        h->given[i] += read_text(s, i, h->given[i], step, text);
        text_room_use(&room, step, text->data + before, text->len - before);
    }
}

/* As record_mark. */
static void mark(struct stored *s)
{
    struct head *h = &s->head;
    const struct record_mark *last = h->n_marks > 0 ? &s->marks[h->n_marks - 1] : NULL;
    const unsigned long long *before = last ? last->end : h->acknowledged;
    if (memcmp(before, h->given, sizeof h->given) != 0 && h->n_marks < h->max_marks)
        /* Where there is room they have been read. NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
        s->marks[h->n_marks++] = (struct record_mark){h->seq, {h->given[0], h->given[1]}};
}

bool record_exists(int dirfd, pid_t pid)
{
    struct head h;
    int fd FD_AUTO = open_file(dirfd, pid, O_RDONLY);
    return read_head(fd, &h);
}

bool record_answer_stored(struct record *r, int dirfd, pid_t pid, long long ack_seq)
{
    struct stored s;
    struct head *h = &s.head;
    if (!open_stored(&s, dirfd, pid))
        return false;
    acknowledge(&s, ack_seq);
    for (int i = 0; i < 2; i++)
        give(&s, i, &r->text[i]);
    r->pid = pid;
    r->seq = h->seq++;
    r->end = h->end;
    r->end.ended = memcmp(h->given, h->len, sizeof h->len) == 0;
    h->told = h->told || r->end.ended;
    mark(&s);
    close_stored(&s);
    return true;
}

/* ---- files ---- */

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
    void (*fn)(void *arg, pid_t pid, const struct record_end *end);
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
    pid_t pid = (pid_t)strtol(name + sizeof "." PREFIX - 1, NULL, 10);
    int fd FD_AUTO = open_file(s->dirfd, pid, O_RDONLY);
    if (read_head(fd, &h))
        s->fn(s->arg, pid, &h.end);
}

void record_each(int dirfd, void (*fn)(void *arg, pid_t pid, const struct record_end *end), void *arg)
{
    struct sweep s = {dirfd, fn, arg};
    ipc_each_file(dirfd, "." PREFIX, visit, &s);
}
