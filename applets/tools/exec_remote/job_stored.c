/* What is stored of a job that has ended: a head, the marks, and for each stream all bytes that are not known
 * to have arrived. Answers turn them into text anew each time; what changes with an answer is in the head and
 * the marks. Those are believed only when their sum is right and they make sense together. */
#include "job_stored.h"

#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "confine.h"
#include "io.h"
#include "ipc.h"
#include "job_shelf.h"
#include "job_text.h"
#include "mem.h"
#include "text_sum.h"
#include "utf8.h"

#define REPEATED_S 300 /* the end can be asked for again at least for so long */
/* Bytes of a stream that answers have brought and nobody acknowledged: each U+FFFD has three. */
#define GIVEN_MAX (JOB_UNACKED_MAX + 3 * JOB_ANSWER_MAX)
#define MARKS_MAX (RECORD_MARKS_MAX + 1024u) /* with those of the answers to come */

enum {
    LATIN1 = 1,
    TOLD = 2,
    ENDED = 4,
    KILLED = 8,
    TIMED_OUT = 16,
    OOM_KILLED = 32,
    STDIN_CLOSED = 64,
    LIMIT_AT = 8, /* and above */
    FLAGS_END = 128
};

/* As it stands in the file: whatever bytes are there make a value of each member. Offsets count from the
 * first byte that is stored. */
/* A flat record, as it lies in the file. */
struct head {
    int64_t asked; /* shelf_now */
    uint64_t sum;  /* of all that follows, and of the marks: whatever else changed them, it is no record */
    int64_t seq;
    uint64_t n_marks, max_marks;
    uint64_t acknowledged[2], given[2], len[2];
    int64_t started_ms, ended_ms;
    int32_t exit_code;
    uint32_t flags;
    uint32_t uid;
    char command[RECORD_COMMAND_MAX];
    uint64_t stdin_discarded;
    uint32_t n_refused; /* bytes of what its walls have refused, behind all else */
};

struct stored {
    struct shelf shelf;
    struct head head;
    struct record_mark *marks;
    char refused[CONFINE_SAID];
};

static size_t marks_size(const struct head *h)
{
    return h->max_marks * sizeof(struct record_mark);
}

static uint64_t sum_of(const struct head *h, const struct record_mark *marks)
{
    struct text_sum sum;
    text_sum_begin(&sum);
    text_sum_add(&sum, &h->seq, sizeof *h - offsetof(struct head, seq));
    text_sum_add(&sum, marks, h->n_marks * sizeof *marks);
    return text_sum_end(&sum);
}

static uint32_t flags_of(const struct record *r, bool latin1)
{
    return (latin1 ? LATIN1 : 0U) | (r->told ? TOLD : 0U) | (r->end.ended ? ENDED : 0U) |
           (r->end.killed ? KILLED : 0U) | (r->end.timed_out ? TIMED_OUT : 0U) |
           (r->end.oom_killed ? OOM_KILLED : 0U) | (r->end.stdin_closed ? STDIN_CLOSED : 0U) |
           (uint32_t)r->end.limit << LIMIT_AT;
}

static struct record_end end_of(const struct stored *s)
{
    const struct head *h = &s->head;
    struct record_end end = {.ended_ms = h->ended_ms,
                             .exit_code = h->exit_code,
                             .ended = h->flags & ENDED,
                             .killed = h->flags & KILLED,
                             .timed_out = h->flags & TIMED_OUT,
                             .oom_killed = h->flags & OOM_KILLED,
                             .limit = (unsigned char)(h->flags >> LIMIT_AT),
                             .stdin_closed = h->flags & STDIN_CLOSED,
                             .stdin_discarded = h->stdin_discarded};
    memcpy(end.refused, s->refused, sizeof end.refused);
    return end;
}

static struct record_job job_of(const struct head *h)
{
    struct record_job job = {.started_ms = h->started_ms, .uid = h->uid};
    memcpy(job.command, h->command, sizeof job.command);
    return job;
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

/* `given`: what answers have brought of the streams. */
static struct head head_of(const struct record *r, const struct fifo *const raw[2], bool latin1,
                           const struct buf given[2])
{
    struct head h = {
        .asked = shelf_now(), .seq = r->seq, .exit_code = r->end.exit_code, .flags = flags_of(r, latin1)};
    h.started_ms = r->job.started_ms;
    h.ended_ms = r->end.ended_ms;
    h.uid = r->job.uid;
    h.stdin_discarded = r->end.stdin_discarded;
    memcpy(h.command, r->job.command, sizeof h.command);
    h.n_refused = (uint32_t)strlen(r->end.refused);
    h.n_marks = r->n_marks;
    h.max_marks = h.n_marks + 4;
    for (int i = 0; i < 2; i++) {
        h.given[i] = given[i].len;
        h.len[i] = given[i].len + raw[i]->len;
        h.max_marks += raw[i]->len / (JOB_ANSWER_MAX / 2);
    }
    return h;
}

int record_store(const struct record *r, const struct fifo *const raw[2], bool latin1, int dirfd,
                 struct err *err)
{
    struct buf given[2] = {BUF_INIT, BUF_INIT};
    for (int i = 0; i < 2; i++)
        given_bytes(&given[i], r, i, latin1);
    struct head h = head_of(r, raw, latin1, given);
    struct record_mark *marks MEM_AUTO = mem_zalloc(h.max_marks * sizeof *marks);
    for (size_t m = 0; m < h.n_marks; m++)
        marks[m] = (struct record_mark){
            r->marks[m].seq,
            {mark_offset(r, &r->marks[m], 0, latin1), mark_offset(r, &r->marks[m], 1, latin1)}};
    h.sum = sum_of(&h, marks);
    const struct shelf_piece pieces[] = {
        {(const char *)&h, sizeof h, NULL},    {(const char *)marks, h.max_marks * sizeof *marks, NULL},
        {given[0].data, given[0].len, raw[0]}, {given[1].data, given[1].len, raw[1]},
        {r->end.refused, h.n_refused, NULL},
    };
    int result = shelf_put(dirfd, r->pid, pieces, sizeof pieces / sizeof *pieces, err);
    buf_release(&given[0]);
    buf_release(&given[1]);
    return result;
}

static bool is_flags(uint32_t flags)
{
    return (flags & 255) < FLAGS_END && flags >> LIMIT_AT <= CONFINE_PARTS;
}

/* ---- answering ---- */

/* One that is cut, longer than its place, or larger than any that is written, is none. */
static bool fits(const struct head *h, size_t size)
{
    size_t left = size - sizeof *h; /* what was read is no longer than that */
    if (h->n_marks > h->max_marks || h->max_marks > MARKS_MAX || marks_size(h) > left)
        return false;
    left -= marks_size(h);
    if (h->len[0] > left || h->len[1] > left - h->len[0])
        return false;
    for (int i = 0; i < 2; i++)
        if (h->acknowledged[i] > h->given[i] || h->given[i] > h->len[i] ||
            h->given[i] - h->acknowledged[i] > GIVEN_MAX)
            return false;
    const char *end = memchr(h->command, '\0', sizeof h->command);
    return h->seq >= 0 && h->seq < LLONG_MAX && is_flags(h->flags) && h->started_ms <= h->ended_ms && end &&
           utf8_is_valid(h->command, (size_t)(end - h->command));
}

/* Each mark is of a later answer than the one before, which had brought no more. */
static bool marks_follow(const struct head *h, const struct record_mark *marks)
{
    struct record_mark before = {-1, {h->acknowledged[0], h->acknowledged[1]}};
    for (size_t m = 0; m < h->n_marks; before = marks[m++])
        if (marks[m].seq <= before.seq || marks[m].seq > h->seq || marks[m].end[0] < before.end[0] ||
            marks[m].end[1] < before.end[1])
            return false;
    return before.end[0] <= h->given[0] && before.end[1] <= h->given[1];
}

static bool read_at(const struct shelf *s, void *data, size_t n, size_t at)
{
    return pread(s->fd, data, n, s->at + (off_t)at) == (ssize_t)n;
}

/* The head and the marks of a sound record. */
static bool read_stored(struct stored *s)
{
    struct head *h = &s->head;
    s->marks = NULL;
    if (s->shelf.size < sizeof *h || !read_at(&s->shelf, h, sizeof *h, 0) || !fits(h, s->shelf.size))
        return false;
    s->marks = mem_alloc(marks_size(h));
    memset(s->refused, 0, sizeof s->refused);
    return read_at(&s->shelf, s->marks, marks_size(h), sizeof *h) && h->sum == sum_of(h, s->marks) &&
           marks_follow(h, s->marks) && h->n_refused < sizeof s->refused &&
           read_at(&s->shelf, s->refused, h->n_refused, sizeof *h + marks_size(h) + h->len[0] + h->len[1]);
}

static void release(struct stored *s)
{
    free(s->marks);
    shelf_close(&s->shelf);
}

/* The keeper that has left it may still be answering. */
static bool open_stored(struct stored *s, int dirfd, pid_t pid)
{
    if (!shelf_find(&s->shelf, dirfd, pid))
        return false;
    if (read_stored(s))
        return true;
    release(s);
    return false;
}

/* By one write, so that whoever dies leaves the one or the other. What was acknowledged may come once more
 * where this can't be written. */
static void close_stored(struct stored *s)
{
    s->head.asked = shelf_now();
    s->head.sum = sum_of(&s->head, s->marks);
    const struct iovec parts[] = {{&s->head, sizeof s->head}, {s->marks, marks_size(&s->head)}};
    if (pwritev(s->shelf.fd, parts, 2, s->shelf.at) < 0) {
        /* no more than that */
    }
    release(s);
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
    off_t at = s->shelf.at + (off_t)(sizeof *h + marks_size(h) + (i == 1 ? h->len[0] : 0) + from);
    if (n == 0)
        return 0;
    buf_reserve(&bytes, n);
    while (bytes.len < n) {
        ssize_t got = pread(s->shelf.fd, bytes.data + bytes.len, n - bytes.len, at + (off_t)bytes.len);
        if (got <= 0)
            break;
        bytes.len += (size_t)got;
    }
    return text_add(text, bytes.data, bytes.len, h->flags & LATIN1, from + bytes.len == h->len[i]);
}

static void give(struct stored *s, int i, struct buf *text)
{
    struct head *h = &s->head;
    read_text(s, i, h->acknowledged[i], (size_t)(h->given[i] - h->acknowledged[i]), text);
    struct text_room room = text_room(text);
    size_t taken = 1; /* 0: it can't be read */
    while (h->given[i] < h->len[i] && taken > 0 && room.bytes > 0 && room.json > 0 &&
           h->n_marks < h->max_marks) {
        unsigned long long left = h->len[i] - h->given[i];
        size_t before = text->len;
        size_t step = text_step(&room, left);
        taken = read_text(s, i, h->given[i], step, text);
        h->given[i] += taken;
        text_room_use(&room, step, buf_str(text) + before, text->len - before);
    }
}

static bool has_news(const struct stored *s)
{
    const struct head *h = &s->head;
    if (h->n_marks == 0)
        return memcmp(h->acknowledged, h->given, sizeof h->given) != 0;
    const struct record_mark *last = &s->marks[h->n_marks - 1];
    return last->end[0] != h->given[0] || last->end[1] != h->given[1];
}

/* As record_mark. */
static void mark(struct stored *s)
{
    struct head *h = &s->head;
    if (has_news(s) && h->n_marks < h->max_marks)
        s->marks[h->n_marks++] = (struct record_mark){h->seq, {h->given[0], h->given[1]}};
}

bool record_exists(int dirfd, pid_t pid)
{
    struct stored s;
    bool found = open_stored(&s, dirfd, pid);
    if (found)
        release(&s);
    return found;
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
    r->end = end_of(&s);
    r->end.ended = memcmp(h->given, h->len, sizeof h->len) == 0;
    h->flags |= r->end.ended ? TOLD : 0U;
    mark(&s);
    close_stored(&s);
    return true;
}

void record_close_stdin(int dirfd, pid_t pid)
{
    struct stored s;
    if (!open_stored(&s, dirfd, pid))
        return;
    s.head.flags |= STDIN_CLOSED;
    close_stored(&s);
}

bool record_discard(int dirfd, pid_t pid, const char *text, size_t n)
{
    struct stored s;
    if (!open_stored(&s, dirfd, pid))
        return true;
    bool closed = s.head.flags & STDIN_CLOSED;
    if (!closed)
        s.head.stdin_discarded += text_bytes(text, n, s.head.flags & LATIN1);
    close_stored(&s);
    return !closed;
}

/* ---- all of them ---- */

bool record_gives_way(int dirfd, pid_t pid, bool told_will_do)
{
    struct stored s;
    if (!open_stored(&s, dirfd, pid))
        return true;
    release(&s);
    long long age = shelf_age(s.head.asked);
    return age > SHELF_KEPT_S || ((s.head.flags & TOLD) && (told_will_do || age > REPEATED_S));
}

static void sweep_socket(void *arg, const char *name)
{
    int dirfd = *(int *)arg;
    struct stat st;
    if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
        (long long)time(NULL) - st.st_ctime > SHELF_KEPT_S)
        unlinkat(dirfd, name, 0);
}

void record_sweep(int dirfd)
{
    shelf_sweep(dirfd);
    ipc_each_file(dirfd, "." JOB_PREFIX, sweep_socket, &dirfd);
}

struct visit {
    record_visitor fn;
    void *arg;
};

static void visit(void *arg, pid_t pid, const struct shelf *s)
{
    const struct visit *v = arg;
    struct stored stored = {.shelf = *s};
    if (read_stored(&stored)) {
        struct record_job job = job_of(&stored.head);
        struct record_end end = end_of(&stored);
        v->fn(v->arg, pid, &job, &end);
    }
    free(stored.marks);
}

void record_each(int dirfd, record_visitor fn, void *arg)
{
    struct visit v = {fn, arg};
    shelf_each(dirfd, visit, &v);
}

static void look_whether_told(void *arg, pid_t pid, const struct shelf *s)
{
    struct stored stored = {.shelf = *s};
    (void)pid;
    if (read_stored(&stored) && !(stored.head.flags & TOLD) && shelf_age(stored.head.asked) <= SHELF_KEPT_S)
        *(bool *)arg = true;
    free(stored.marks);
}

bool record_any_untold(int dirfd)
{
    bool any = false;
    shelf_each(dirfd, look_whether_told, &any);
    return any;
}
