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
    if (s->skipping)
        s->skipping = false;
    else if (n > SERVE_LINE_MAX)
        s->owner->line(s, (struct span){0});
    else
        s->owner->line(s, (struct span){line, n});
}

/* The whole lines that are there, as long as there is room for answers. */
static void take_lines(struct serve *s)
{
    size_t at = 0;
    for (char *end; s->out.len <= SERVE_OUT_MAX &&
                    (end = memchr(s->line.data + s->looked_at, '\n', s->line.len - s->looked_at));) {
        size_t stop = (size_t)(end - s->line.data);
        take_line(s, s->line.data + at, stop - at);
        at = s->looked_at = stop + 1;
    }
    if (at > 0)
        buf_consume(&s->line, at);
    s->looked_at = 0;
    if (s->out.len > SERVE_OUT_MAX)
        return;
    s->looked_at = s->line.len;
    if (s->line.len > SERVE_LINE_MAX) {
        if (!s->skipping)
            s->owner->line(s, (struct span){0});
        s->skipping = true;
    }
    if (s->skipping) {
        buf_truncate(&s->line, 0);
        s->looked_at = 0;
    }
    if (s->line.len == 0)
        buf_shrink(&s->line);
}

void serve_feed(struct serve *s, const char *data, size_t n)
{
    if (n == 0)
        return;
    buf_add(&s->line, data, n);
    take_lines(s);
}

void serve_feed_end(struct serve *s)
{
    if (s->line.len > 0)
        take_line(s, s->line.data, s->line.len);
    buf_truncate(&s->line, 0);
    s->looked_at = 0;
}

static void input_end(struct serve *s)
{
    loop_drop(&s->in);
    loop_drop(&s->in_timer);
    s->input_ended = true;
    serve_feed_end(s);
    s->owner->advanced(s);
}

static void read_input(struct serve *s)
{
    static char data[READ_STEP];
    ssize_t n = read(STDIN_FILENO, data, sizeof data);
    if (n > 0)
        serve_feed(s, data, (size_t)n);
    else if (n == 0 || (errno != EINTR && errno != EAGAIN))
        input_end(s);
    serve_io_balance(s);
}

static void on_input(void *arg, int events)
{
    struct serve *s = arg;
    if (!s->paused || (events & LOOP_READ)) {
        read_input(s);
    } else if (s->in) { /* closed, with something left to read, which has to wait, but not for ever */
        loop_drop(&s->in);
        s->owner->stalled(s);
    }
}

/* For what is always ready: a file, /dev/null. */
static void on_input_timer(void *arg)
{
    struct serve *s = arg;
    if (!s->paused)
        read_input(s);
    if (s->in_timer)
        loop_timer_set(s->in_timer, FILE_MS);
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
    loop_drop(&s->leaving);
    s->owner->deaf(s);
}

static void output_end(struct serve *s)
{
    loop_drop(&s->out_source);
    s->output_ended = true;
    fifo_release(&s->out);
    s->leaving = loop_timer(s->loop, 1, on_leaving, s);
}

/* What a pipe that can be written to takes at once: the descriptor may block, as it isn't ours alone. */
static void write_output(struct serve *s)
{
    struct buf piece BUF_AUTO = BUF_INIT;
    fifo_peek(&s->out, s->out.len < PIPE_BUF ? s->out.len : PIPE_BUF, &piece);
    ssize_t n = write(STDOUT_FILENO, piece.data, piece.len);
    if (n > 0)
        fifo_drop(&s->out, (size_t)n);
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
    if (s->out.len > 0)
        write_output(s);
    serve_io_balance(s);
    s->owner->advanced(s);
}

void serve_send(struct serve *s, struct span message)
{
    if (s->output_ended)
        return;
    fifo_add(&s->out, message.s, message.n);
    fifo_add(&s->out, "\n", 1);
    if (s->out_source) {
        loop_fd_events(s->out_source, LOOP_WRITE);
        return;
    }
    while (s->out.len > 0 && !s->output_ended)
        write_output(s);
}

void serve_io_balance(struct serve *s)
{
    if (s->out_source)
        loop_fd_events(s->out_source, s->out.len > 0 ? LOOP_WRITE : 0);
    s->paused = s->out.len > SERVE_OUT_MAX;
    if (!s->paused && s->line.len > s->looked_at) {
        take_lines(s);
        s->paused = s->out.len > SERVE_OUT_MAX;
    }
    if (!s->in && !s->input_ended && !s->in_timer && !s->paused)
        s->in = loop_fd(s->loop, STDIN_FILENO, LOOP_READ, on_input, s);
    else if (s->in)
        loop_fd_events(s->in, s->paused ? 0 : LOOP_READ);
}

void serve_io_start(struct serve *s)
{
    if (can_wait_for(STDOUT_FILENO))
        s->out_source = loop_fd(s->loop, STDOUT_FILENO, 0, on_output, s);
    if (!can_wait_for(STDIN_FILENO))
        s->in_timer = loop_timer(s->loop, FILE_MS, on_input_timer, s);
    serve_io_balance(s);
}
