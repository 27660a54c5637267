/* Lines in, lines out. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io.h"
#include "serve.h"

#define READ_STEP 65536
#define FILE_MS 1 /* between two reads of what can't be waited for */

/* ---- in ---- */

/* The line that begins the buffer has `n` bytes, without its newline. */
static void take_line(struct serve *s, const char *line, size_t n)
{
    if (s->in.skipping)
        s->in.skipping = false;
    else if (n > SERVE_LINE_MAX)
        s->owner->line(s, (struct span){0});
    else
        s->owner->line(s, (struct span){line, n});
}

/* The whole lines that are there, as long as there is room for answers. */
static void take_lines(struct serve *s)
{
    size_t at = 0;
    for (char *end;
         s->out.waiting.len <= SERVE_OUT_MAX && s->in.looked_at < s->in.line.len &&
         (end = memchr(s->in.line.data + s->in.looked_at, '\n', s->in.line.len - s->in.looked_at));) {
        size_t stop = (size_t)(end - s->in.line.data);
        take_line(s, s->in.line.data + at, stop - at);
        at = s->in.looked_at = stop + 1;
    }
    if (at > 0)
        buf_consume(&s->in.line, at);
    s->in.looked_at = 0;
    if (s->out.waiting.len > SERVE_OUT_MAX)
        return;
    s->in.looked_at = s->in.line.len;
    if (s->in.line.len > SERVE_LINE_MAX) {
        if (!s->in.skipping)
            s->owner->line(s, (struct span){0});
        s->in.skipping = true;
    }
    if (s->in.skipping) {
        buf_truncate(&s->in.line, 0);
        s->in.looked_at = 0;
    }
    if (s->in.line.len == 0)
        buf_shrink(&s->in.line);
}

void serve_feed(struct serve *s, const char *data, size_t n)
{
    if (n == 0)
        return;
    buf_add(&s->in.line, data, n);
    take_lines(s);
}

void serve_feed_end(struct serve *s)
{
    if (s->in.line.len > 0)
        take_line(s, s->in.line.data, s->in.line.len);
    buf_truncate(&s->in.line, 0);
    s->in.looked_at = 0;
}

static void input_end(struct serve *s)
{
    loop_drop(&s->in.source);
    loop_drop(&s->in.timer);
    s->in.ended = true;
    serve_feed_end(s);
    s->owner->advanced(s);
}

static void read_input(struct serve *s)
{
    static char data[READ_STEP];
    ssize_t n = read(s->in.fd, data, sizeof data);
    if (n > 0)
        serve_feed(s, data, (size_t)n);
    else if (n == 0 || (errno != EINTR && errno != EAGAIN))
        input_end(s);
    serve_io_balance(s);
}

static void on_input(void *arg, int events)
{
    struct serve *s = arg;
    if (!s->out.full || (events & LOOP_READ)) {
        read_input(s);
    } else if (s->in.source) { /* closed, with something left to read, which has to wait, but not for ever */
        loop_drop(&s->in.source);
        s->owner->stalled(s);
    }
}

/* For what is always ready: a file, /dev/null. */
static void on_input_timer(void *arg)
{
    struct serve *s = arg;
    if (!s->out.full)
        read_input(s);
    if (s->in.timer)
        loop_timer_set(s->in.timer, FILE_MS);
}

static bool can_wait_for(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode) || isatty(fd));
}

/* ---- out ---- */

/* Not from the middle of a call that has just been answered. */
static void on_leaving(void *arg)
{
    struct serve *s = arg;
    loop_drop(&s->end.leaving);
    s->owner->deaf(s);
}

static void output_end(struct serve *s)
{
    loop_drop(&s->out.source);
    s->out.ended = true;
    fifo_release(&s->out.waiting);
    s->end.leaving = loop_timer(s->loop, 1, on_leaving, s);
}

/* What a pipe that can be written to takes at once: the descriptor may block, as it isn't ours alone. */
static void write_output(struct serve *s)
{
    struct buf piece BUF_AUTO = BUF_INIT;
    fifo_peek(&s->out.waiting, s->out.waiting.len < PIPE_BUF ? s->out.waiting.len : PIPE_BUF, &piece);
    ssize_t n = write(s->out.fd, piece.data, piece.len);
    if (n > 0)
        fifo_drop(&s->out.waiting, (size_t)n);
    else if (n < 0 && errno != EINTR && errno != EAGAIN && errno != ENOMEM)
        output_end(s);
}

static void on_output(void *arg, int events)
{
    struct serve *s = arg;
    if (events & LOOP_HANGUP) {
        output_end(s);
        return;
    }
    if (s->out.waiting.len > 0)
        write_output(s);
    serve_io_balance(s);
    s->owner->advanced(s);
}

void serve_send(struct serve *s, struct sse *to, struct span message, bool last)
{
    if (to)
        s->owner->said(to, message, last);
    if (to || !message.s || s->out.ended)
        return;
    fifo_add(&s->out.waiting, message.s, message.n);
    fifo_add(&s->out.waiting, "\n", 1);
    if (s->out.source) {
        loop_fd_events(s->out.source, LOOP_WRITE);
        return;
    }
    while (s->out.waiting.len > 0 && !s->out.ended)
        write_output(s);
}

void serve_io_balance(struct serve *s)
{
    if (s->out.source)
        loop_fd_events(s->out.source, s->out.waiting.len > 0 ? LOOP_WRITE : 0);
    s->out.full = s->out.waiting.len > SERVE_OUT_MAX;
    if (!s->out.full && s->in.line.len > s->in.looked_at) {
        take_lines(s);
        s->out.full = s->out.waiting.len > SERVE_OUT_MAX;
    }
    if (!s->in.source && !s->in.ended && !s->in.timer && !s->out.full)
        s->in.source = loop_fd(s->loop, s->in.fd, LOOP_READ, on_input, s);
    else if (s->in.source)
        loop_fd_events(s->in.source, s->out.full ? 0 : LOOP_READ);
}

void serve_io_start(struct serve *s)
{
    if (can_wait_for(s->out.fd))
        s->out.source = loop_fd(s->loop, s->out.fd, 0, on_output, s);
    if (!can_wait_for(s->in.fd))
        s->in.timer = loop_timer(s->loop, FILE_MS, on_input_timer, s);
    serve_io_balance(s);
}
