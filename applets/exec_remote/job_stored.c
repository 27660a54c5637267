/* What is stored of a job that has ended: a head, the marks, and for each stream all bytes that are not known
 * to have arrived. Answers turn them into text anew each time; what changes with an answer is in the head and
 * the marks. */
#include "job_stored.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "io.h"
#include "ipc.h"
#include "job_shelf.h"
#include "job_text.h"
#include "mem.h"

#define REPEATED_S 300 /* the end can be asked for again at least for so long */

/* Offsets count from the first byte that is stored. */
struct head {
    long long asked; /* shelf_now */
    long long seq;
    struct record_end end;
    bool told, latin1;
    size_t n_marks, max_marks;
    unsigned long long acknowledged[2], given[2], len[2];
};

struct stored {
    struct shelf shelf;
    struct head head;
    struct record_mark *marks;
};

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
    struct head h = {.asked = shelf_now(), .seq = r->seq, .end = r->end, .told = r->told, .latin1 = latin1};
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
    const struct shelf_piece pieces[] = {
        {(const char *)&h, sizeof h, NULL},
        {(const char *)marks, h.max_marks * sizeof *marks, NULL},
        {given[0].data, given[0].len, raw[0]},
        {given[1].data, given[1].len, raw[1]},
    };
    int result = shelf_put(dirfd, r->pid, pieces, sizeof pieces / sizeof *pieces, err);
    buf_release(&given[0]);
    buf_release(&given[1]);
    return result;
}

/* ---- answering ---- */

static size_t marks_size(const struct head *h)
{
    return h->max_marks * sizeof(struct record_mark);
}

/* One that is cut, or longer than its place, is none. */
static bool read_head(const struct shelf *s, struct head *h)
{
    return pread(s->fd, h, sizeof *h, s->at) == sizeof *h && h->max_marks <= s->size &&
           h->len[0] <= s->size && h->len[1] <= s->size &&
           sizeof *h + marks_size(h) + h->len[0] + h->len[1] <= s->size;
}

static bool find(struct shelf *s, struct head *h, int dirfd, pid_t pid)
{
    if (shelf_find(s, dirfd, pid) && read_head(s, h))
        return true;
    shelf_close(s);
    return false;
}

/* The keeper that has left it may still be answering. */
static bool open_stored(struct stored *s, int dirfd, pid_t pid)
{
    if (!find(&s->shelf, &s->head, dirfd, pid))
        return false;
    size_t size = marks_size(&s->head);
    s->marks = mem_alloc(size);
    if (pread(s->shelf.fd, s->marks, size, s->shelf.at + (off_t)sizeof s->head) == (ssize_t)size)
        return true;
    free(s->marks);
    shelf_close(&s->shelf);
    return false;
}

/* What was acknowledged may come once more where this can't be written. */
static void close_stored(struct stored *s)
{
    off_t at = s->shelf.at;
    s->head.asked = shelf_now();
    if (pwrite(s->shelf.fd, &s->head, sizeof s->head, at) < 0 ||
        pwrite(s->shelf.fd, s->marks, marks_size(&s->head), at + (off_t)sizeof s->head) < 0) {
        /* no more than that */
    }
    free(s->marks);
    shelf_close(&s->shelf);
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
    buf_reserve(&bytes, n);
    while (bytes.len < n) {
        ssize_t got = pread(s->shelf.fd, bytes.data + bytes.len, n - bytes.len, at + (off_t)bytes.len);
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
    struct shelf s;
    struct head h;
    bool found = find(&s, &h, dirfd, pid);
    shelf_close(&s);
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
    r->end = h->end;
    r->end.ended = memcmp(h->given, h->len, sizeof h->len) == 0;
    h->told = h->told || r->end.ended;
    mark(&s);
    close_stored(&s);
    return true;
}

/* ---- all of them ---- */

bool record_gives_way(int dirfd, pid_t pid, bool told_will_do)
{
    struct shelf s;
    struct head h;
    if (!find(&s, &h, dirfd, pid))
        return true;
    shelf_close(&s);
    long long age = shelf_age(h.asked);
    return age > SHELF_KEPT_S || (h.told && (told_will_do || age > REPEATED_S));
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
    void (*fn)(void *arg, pid_t pid, const struct record_end *end);
    void *arg;
};

static void visit(void *arg, pid_t pid, const struct shelf *s)
{
    const struct visit *v = arg;
    struct head h;
    if (read_head(s, &h))
        v->fn(v->arg, pid, &h.end);
}

void record_each(int dirfd, void (*fn)(void *arg, pid_t pid, const struct record_end *end), void *arg)
{
    struct visit v = {fn, arg};
    shelf_each(dirfd, visit, &v);
}
