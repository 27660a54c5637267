#include "relay_child.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io.h"
#include "json.h"
#include "mem.h"
#include "self.h"
#include "serve_far.h"
#include "spawn.h"

#define LEAVE_MS 6000  /* for the process, once nothing more is sent */
#define SAID_MAX 4096  /* bytes of what it says on stderr that are kept */
#define READS_MAX 1000 /* of what an ended one has left */

static void on_writable(void *arg, int events)
{
    struct relay_child *c = arg;
    if (!(events & LOOP_HANGUP) && c->waiting.len > 0 && fifo_write(&c->waiting, c->in) < 0 &&
        (errno == EAGAIN || errno == EINTR))
        return;
    if (events & LOOP_HANGUP || (c->waiting.len > 0 && errno == EPIPE))
        loop_drop(&c->writer); /* it is ending, which is told by its process */
    else if (c->waiting.len == 0)
        loop_fd_events(c->writer, 0);
}

void relay_child_send(struct relay_child *c, struct span line)
{
    struct buf compact BUF_AUTO = BUF_INIT;
    if (!c->writer)
        return;
    json_compact(&compact, line);
    buf_addc(&compact, '\n');
    fifo_add(&c->waiting, compact.data, compact.len);
    loop_fd_events(c->writer, LOOP_WRITE);
}

static void on_readable(void *arg, int events)
{
    struct relay_child *c = arg;
    (void)events;
    ssize_t n = io_read_more(c->out, &c->line);
    if (n < 0 && errno == EAGAIN)
        return;
    if (n <= 0) {
        loop_drop(&c->reader);
        return;
    }
    size_t at = 0;
    for (char *end; (end = memchr(c->line.data + at, '\n', c->line.len - at));) {
        size_t stop = (size_t)(end - c->line.data);
        c->owner.took(c->owner.arg, (struct span){c->line.data + at, stop - at});
        at = stop + 1;
    }
    buf_consume(&c->line, at);
    if (c->line.len == 0)
        buf_shrink(&c->line);
}

static void on_heard(void *arg, int events)
{
    struct relay_child *c = arg;
    (void)events;
    size_t before = c->said.len;
    ssize_t n = io_read_more(c->errors, &c->said);
    if (n < 0 && errno == EAGAIN)
        return;
    if (n <= 0) {
        loop_drop(&c->hearer);
        return;
    }
    io_write_all(STDERR_FILENO, c->said.data + before, (size_t)n); /* where it can't be said it is kept */
    if (c->said.len > SAID_MAX)
        buf_consume(&c->said, c->said.len - SAID_MAX);
}

void relay_child_why(const struct relay_child *c, struct err *err)
{
    size_t n = c->said.len;
    while (n > 0 && c->said.data[n - 1] == '\n')
        n--;
    err_set(err, -32603, "Internal error: what serves in the target has ended%s%.*s", n > 0 ? ": " : "",
            (int)n, buf_str(&c->said));
}

static void on_ended(void *arg, pid_t pid, int status)
{
    struct relay_child *c = arg;
    (void)pid;
    (void)status;
    c->pid = 0;
    c->ended = NULL;
    for (int i = 0; i < READS_MAX && c->reader && io_is_readable(c->out); i++)
        on_readable(c, LOOP_READ); /* what it said last; others may hold its end of the pipe */
    if (c->hearer && io_is_readable(c->errors))
        on_heard(c, LOOP_READ);
    c->owner.ended(c->owner.arg);
}

static void out_of_patience(void *arg)
{
    struct relay_child *c = arg;
    if (c->pid > 0)
        kill(c->pid, SIGKILL);
}

static void hang_up(struct relay_child *c)
{
    loop_drop(&c->writer);
    io_close(&c->in);
}

void relay_child_leave(struct relay_child *c)
{
    if (c->waiting.len > 0)
        fifo_write(&c->waiting, c->in); /* what fits: its end is told by the end of the pipe as well */
    hang_up(c);
    c->leaving = loop_timer(c->loop, LEAVE_MS, out_of_patience, c);
}

void relay_child_release(struct relay_child *c)
{
    if (c->pid > 0)
        kill(c->pid, SIGKILL);
    hang_up(c);
    loop_drop(&c->reader);
    loop_drop(&c->hearer);
    loop_drop(&c->ended);
    loop_drop(&c->leaving);
    io_close(&c->out);
    io_close(&c->errors);
    fifo_release(&c->waiting);
    buf_release(&c->line);
    buf_release(&c->said);
}

static int start(struct relay_child *c, const struct serve_far *far, const char *target, int fds[3],
                 struct err *err)
{
    char *self MEM_AUTO = self_path();
    const char *const programs[] = {self, NULL};
    size_t n = 0, more = 0;
    while (far->rest[more])
        more++;
    char **argv = mem_zalloc((more + 6) * sizeof *argv);
    argv[n++] = self;
    argv[n++] = (char *)"mcp";
    argv[n++] = (char *)"serve";
    argv[n++] = (char *)"--in";
    argv[n++] = (char *)target;
    memcpy(argv + n, far->rest, more * sizeof *argv);
    struct spawn s = {.programs = programs, .argv = argv, .env = environ, .cwd = ".", .start_dir = -1};
    memcpy(s.fds, fds, sizeof s.fds);
    c->pid = self ? spawn(&s, NULL, err) : err_set(err, ERR_INTERNAL, "this program can't be found");
    free(argv);
    return c->pid > 0 ? 0 : -1;
}

int relay_child_start(struct relay_child *c, struct loop *loop, const struct serve_far *far,
                      const char *target, const struct relay_child_owner *owner, struct err *err)
{
    int pipes[3][2] = {{-1, -1}, {-1, -1}, {-1, -1}};
    *c = (struct relay_child){.loop = loop, .owner = *owner, .line = BUF_INIT, .said = BUF_INIT};
    int made = io_pipes(pipes, 3);
    int fds[3] = {pipes[0][0], pipes[1][1], pipes[2][1]};
    c->in = pipes[0][1];
    c->out = pipes[1][0];
    c->errors = pipes[2][0];
    if (made < 0)
        err_sys(err, ERR_INTERNAL, errno, "no pipe can be had");
    int result = made < 0 ? -1 : start(c, far, target, fds, err);
    for (int i = 0; i < 3; i++)
        io_close(&fds[i]);
    if (result < 0) {
        c->pid = 0;
        return -1;
    }
    io_set_nonblock(c->in, true);
    io_set_nonblock(c->out, true);
    io_set_nonblock(c->errors, true);
    c->writer = loop_fd(loop, c->in, 0, on_writable, c);
    c->reader = loop_fd(loop, c->out, LOOP_READ, on_readable, c);
    c->hearer = loop_fd(loop, c->errors, LOOP_READ, on_heard, c);
    c->ended = loop_child(loop, c->pid, on_ended, c);
    return 0;
}
