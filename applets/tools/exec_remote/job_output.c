/* A job's stdout and stderr: from the pipe into memory, and from there into text. */
#include <errno.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "io.h"
#include "job_internal.h"
#include "job_text.h"
#include "commands/confine/walls.h"

#define READ_STEP (256u << 10) /* bytes read in one go: others get their turn */

static size_t held(const struct job *j, int i)
{
    return j->out[i].raw.len + j->record.text[i].len;
}

static size_t left_of(size_t limit, size_t used)
{
    return limit > used ? limit - used : 0;
}

/* Bytes that may still be read of a stream: both have one share of the memory, and neither keeps the other
 * from the least. */
static size_t room(struct job *j, int i)
{
    size_t all = held(j, 0) + held(j, 1), own = left_of(JOB_HELD_MAX, held(j, i));
    size_t shared = left_of(memory_share(&j->share, all, 2UL * JOB_HELD_MAX), all);
    size_t least = left_of(MEMORY_SHARE_LEAST / 2, held(j, i));
    shared = shared > least ? shared : least;
    return own < shared ? own : shared;
}

static void end_stream(struct job_stream *s)
{
    loop_drop(&s->source);
    io_close(&s->fd);
}

/* Reads at most `max` bytes, into memory or nowhere. False: there is nothing for the moment, or it has ended.
 */
static bool read_some(struct job_stream *s, size_t max, size_t *got)
{
    static char nowhere[65536];
    ssize_t n;
    do
        n = s->discard ? read(s->fd, nowhere, sizeof nowhere) : fifo_read(&s->raw, s->fd, max);
    while (n < 0 && errno == EINTR);
    *got = n > 0 ? (size_t)n : 0;
    if (n == 0 || (n < 0 && errno != EAGAIN))
        end_stream(s);
    return n > 0;
}

static void on_output(struct job *j, int i)
{
    struct job_stream *s = &j->out[i];
    size_t left = READ_STEP, got;
    if (!s->discard && room(j, i) < left)
        left = room(j, i);
    while (left > 0 && s->fd >= 0 && read_some(s, left, &got))
        left -= got < left ? got : left;
    /* Not just quiet: a closed pipe would go on waking us. */
    if (s->fd >= 0 && !s->discard && room(j, i) == 0)
        loop_drop(&s->source);
    job_notify(j);
}

static void on_stdout(void *arg, int events)
{
    (void)events;
    on_output(arg, 0);
}

static void on_stderr(void *arg, int events)
{
    (void)events;
    on_output(arg, 1);
}

static void resume(struct job *j, int i)
{
    struct job_stream *s = &j->out[i];
    if (s->fd >= 0 && !s->source && (s->discard || room(j, i) > 0))
        s->source = loop_fd(j->loop, s->fd, LOOP_READ, i == 0 ? on_stdout : on_stderr, j);
}

void job_open_stream(struct job *j, int i, int fd)
{
    j->out[i].fd = fd;
    io_set_nonblock(fd, true);
    resume(j, i);
}

void job_resume_streams(struct job *j)
{
    resume(j, 0);
    resume(j, 1);
}

void job_finish_streams(struct job *j)
{
    for (int i = 0; i < 2; i++) {
        struct job_stream *s = &j->out[i];
        int readable = 0;
        size_t got;
        if (s->fd >= 0 && (j->terminal || ioctl(s->fd, FIONREAD, &readable) < 0))
            readable = READ_STEP; /* as much as there is, or this: a terminal doesn't hold as much */
        for (; readable > 0 && s->fd >= 0 && read_some(s, (size_t)readable, &got); readable -= (int)got)
            ;
        s->discard = true;
        resume(j, i);
    }
}

/* What nobody has asked for yet. */
void job_look_at_rest(struct job *j)
{
    for (int i = 0; i < 2; i++) {
        struct buf bytes BUF_AUTO = BUF_INIT;
        size_t n = j->out[i].raw.len < READ_STEP ? j->out[i].raw.len : READ_STEP;
        if (j->walls && n > 0) {
            fifo_peek(&j->out[i].raw, n, &bytes);
            walls_look_on(j->walls, i, bytes.data, n, j->record.end.refused);
        }
    }
}

void job_close_streams(struct job *j)
{
    end_stream(&j->out[0]);
    end_stream(&j->out[1]);
}

static void take_stream(struct job *j, int i)
{
    struct job_stream *s = &j->out[i];
    struct buf *text = &j->record.text[i];
    struct text_room room = text_room(text);
    size_t taken = 1;
    while (s->raw.len > 0 && taken > 0 && room.bytes > 0 && room.json > 0) {
        struct buf bytes BUF_AUTO = BUF_INIT;
        size_t before = text->len, step = text_step(&room, s->raw.len);
        fifo_peek(&s->raw, step, &bytes);
        walls_look_on(j->walls, i, bytes.data, step, j->record.end.refused);
        taken = text_add(text, bytes.data, step, j->latin1, job_stream_is_final(s) && step == s->raw.len);
        fifo_drop(&s->raw, taken);
        text_room_use(&room, step, buf_str(text) + before, text->len - before);
    }
}

void job_take(struct job *j)
{
    for (int i = 0; i < 2; i++) {
        if (j->record.n_marks < RECORD_MARKS_MAX)
            take_stream(j, i);
        resume(j, i);
    }
    j->record.end.ended = j->reaped && j->out[0].raw.len == 0 && j->out[1].raw.len == 0;
}
