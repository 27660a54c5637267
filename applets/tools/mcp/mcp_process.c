#include "mcp_process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io.h"
#include "term_filter.h"

#define READ_STEP (1u << 20) /* bytes read in one go: others get their turn */
#define PIPE_SIZE                                                                                            \
    (1 << 18)           /* of its stdout: a long answer then takes fewer turns; a user has 64 MiB of pipes */
#define UNENDED_MS 1000 /* for the rest of a line, until what is there is looked at */
#define GRACE_MS 500    /* for a server that closes a pipe to end */
#define LAST_WORDS 600  /* bytes of stderr in an error */

static void close_pipe(struct mcp_pipe *pipe)
{
    loop_drop(&pipe->source);
    io_close(&pipe->fd);
}

/* ---- its end ---- */

static void end(struct mcp_process *p)
{
    if (p->end.over)
        return;
    p->end.over = true;
    loop_drop(&p->grace);
    loop_drop(&p->unended);
    mcp_process_close_stdin(p);
    close_pipe(&p->out);
    mcp_lines_release(&p->lines);
    p->events->ended(p->arg);
}

static void on_grace(void *arg)
{
    struct mcp_process *p = arg;
    loop_drop(&p->grace);
    if (p->out.fd < 0) {
        end(p);
        return;
    }
    p->deaf = true;
    mcp_process_close_stdin(p);
    p->events->deaf(p->arg);
}

/* A pipe is closed at its side. Most often that is its end, which then has a status to tell. Never at once: a
 * line may be in somebody's hands. */
static void falter(struct mcp_process *p)
{
    if (!p->end.over && !p->grace)
        p->grace = loop_timer(p->loop, p->end.reaped ? 1 : GRACE_MS, on_grace, p);
}

/* ---- stdout ---- */

static void give_lines(struct mcp_process *p)
{
    struct span line;
    enum mcp_lines_state state;
    while (!p->end.over && (state = mcp_lines_next(&p->lines, &line)) != MCP_LINES_NONE)
        p->events->line(p->arg, state, line);
}

/* A server that ends no line, or with CR alone: what is a whole message is one. */
static void on_unended(void *arg)
{
    struct mcp_process *p = arg;
    loop_drop(&p->unended);
    if (p->end.over || !mcp_lines_is_message(&p->lines))
        return;
    mcp_lines_finish(&p->lines);
    give_lines(p);
}

static void wait_for_end_of_line(struct mcp_process *p)
{
    bool begun = p->lines.held.len > 0 && !p->lines.too_long && !p->end.over;
    if (!begun)
        loop_drop(&p->unended);
    else if (!p->unended)
        p->unended = loop_timer(p->loop, UNENDED_MS, on_unended, p);
    else
        loop_timer_set(p->unended, UNENDED_MS);
}

/* Reads at most `max` bytes: how many; 0 when there is nothing for the moment, or at the end. *more: there
 * may be some behind them. */
static size_t read_stdout(struct mcp_process *p, size_t max, bool *more)
{
    size_t room;
    char *data = mcp_lines_room(&p->lines, &room);
    ssize_t n = read(p->out.fd, data, room < max ? room : max);
    *more = n > 0 && (size_t)n == (room < max ? room : max);
    if (n > 0) {
        p->spoke = true;
        mcp_lines_filled(&p->lines, (size_t)n);
        give_lines(p);
        wait_for_end_of_line(p);
        return (size_t)n;
    }
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    close_pipe(&p->out);
    mcp_lines_finish(&p->lines);
    give_lines(p);
    falter(p);
    return 0;
}

static void on_stdout(void *arg, int events)
{
    struct mcp_process *p = arg;
    (void)events;
    bool more = true;
    for (size_t left = READ_STEP; more && left > 0 && p->out.fd >= 0;)
        left -= read_stdout(p, left, &more);
}

/* ---- stderr ---- */

static size_t read_stderr(struct mcp_process *p)
{
    static char data[MCP_LOG_MAX];
    ssize_t n = read(p->err.fd, data, sizeof data);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        close_pipe(&p->err);
    if (n <= 0)
        return 0;
    buf_add(&p->log, data, (size_t)n);
    if (p->log.len > MCP_LOG_MAX)
        buf_consume(&p->log, p->log.len - MCP_LOG_MAX);
    return (size_t)n;
}

static void on_stderr(void *arg, int events)
{
    (void)events;
    read_stderr(arg);
}

/* ---- stdin ---- */

static void on_writable(void *arg, int events);

/* What a write to its stdin has come to. False: it takes no more for now, or never again. */
static bool wrote(struct mcp_process *p, ptrdiff_t n)
{
    if (n > 0)
        p->to.written += (unsigned long long)n;
    if (n >= 0 || errno == EINTR)
        return true;
    if (errno == EAGAIN || errno == ENOMEM) { /* the kernel had no page for the pipe */
        if (!p->in.source)
            p->in.source = loop_fd(p->loop, p->in.fd, LOOP_WRITE, on_writable, p);
        return false;
    }
    close_pipe(&p->in);
    falter(p);
    return false;
}

/* A source only while something waits: a pipe that nobody reads any more would go on waking us. */
static void on_writable(void *arg, int events)
{
    struct mcp_process *p = arg;
    (void)events;
    while (p->in.fd >= 0 && p->to.queue.len > 0)
        if (!wrote(p, fifo_write(&p->to.queue, p->in.fd)))
            return;
    loop_drop(&p->in.source);
}

int mcp_process_send(struct mcp_process *p, struct span line)
{
    if (p->to.queue.len > 0 &&
        p->to.queue.len + line.n > memory_share(&p->to.share, p->to.queue.len + line.n, MCP_QUEUE_MAX))
        return -1;
    p->to.queued += line.n;
    while (p->in.fd >= 0 && p->to.queue.len == 0 && line.n > 0) {
        ssize_t n = write(p->in.fd, line.s, line.n);
        if (!wrote(p, n))
            break;
        line.s += n > 0 ? n : 0;
        line.n -= n > 0 ? (size_t)n : 0;
    }
    fifo_add(&p->to.queue, line.s, line.n);
    return 0;
}

void mcp_process_close_stdin(struct mcp_process *p)
{
    close_pipe(&p->in);
    fifo_release(&p->to.queue);
}

/* ---- the main process ---- */

/* What is in the pipes by now, and nothing after that. */
static void drain(struct mcp_process *p)
{
    int readable = 0;
    size_t n = 1;
    bool more;
    if (p->out.fd >= 0)
        ioctl(p->out.fd, FIONREAD, &readable);
    for (; n > 0 && readable > 0 && p->out.fd >= 0; readable -= (int)n)
        n = read_stdout(p, (size_t)readable, &more);
    readable = 0;
    if (p->err.fd >= 0)
        ioctl(p->err.fd, FIONREAD, &readable);
    for (n = 1; n > 0 && readable > 0 && p->err.fd >= 0; readable -= (int)n)
        n = read_stderr(p);
}

static bool has_reader(int fd)
{
    struct pollfd f = {.fd = fd, .events = POLLOUT};
    return fd >= 0 && poll(&f, 1, 0) >= 0 && !(f.revents & POLLERR);
}

static void main_ended(void *arg, pid_t pid, int status)
{
    struct mcp_process *p = arg;
    (void)pid;
    bool wrapper =
        WIFEXITED(status) && WEXITSTATUS(status) == 0 && !p->spoke && p->out.fd >= 0 && has_reader(p->in.fd);
    p->end.reaped = true;
    p->end.status = status;
    drain(p);
    if (!p->end.over && !wrapper) {
        mcp_lines_finish(&p->lines);
        give_lines(p);
        end(p);
    }
    p->events->reaped(p->arg);
}

/* ---- the beginning ---- */

int mcp_process_start(struct mcp_process *p, struct loop *loop, struct spawn *s, size_t line_max,
                      const struct mcp_process_events *events, void *arg, struct err *err)
{
    int pipes[3][2] = {{-1, -1}, {-1, -1}, {-1, -1}};
    p->loop = loop;
    p->events = events;
    p->arg = arg;
    buf_init(&p->log, BUF_NO_MAX);
    mcp_lines_init(&p->lines, line_max);
    p->pid = -1;
    if (io_pipes(pipes, 3) < 0) {
        err_sys(err, ERR_TOOL, errno, "cannot make a pipe");
    } else {
        s->fds[0] = pipes[0][0];
        s->fds[1] = pipes[1][1];
        s->fds[2] = pipes[2][1];
        p->pid = spawn(s, NULL, err);
    }
    if (p->pid > 0) {
        p->in.fd = io_take(&pipes[0][1]);
        p->out.fd = io_take(&pipes[1][0]);
        p->err.fd = io_take(&pipes[2][0]);
        fcntl(p->out.fd, F_SETPIPE_SZ, PIPE_SIZE);
        p->out.source = loop_fd(loop, p->out.fd, LOOP_READ, on_stdout, p);
        p->err.source = loop_fd(loop, p->err.fd, LOOP_READ, on_stderr, p);
        loop_child(loop, p->pid, main_ended, p);
    }
    for (int i = 0; i < 6; i++)
        io_close(&pipes[i / 2][i % 2]);
    return p->pid > 0 ? 0 : -1;
}

/* ---- what there is to say ---- */

void mcp_process_put_log(const struct mcp_process *p, size_t max, struct buf *out)
{
    struct term_filter plain = {0};
    size_t n = p->log.len < max ? p->log.len : max;
    const char *s = buf_str(&p->log) + p->log.len - n;
    const char *newline = n < p->log.len ? memchr(s, '\n', n - 1) : NULL;
    if (n == 0)
        return;
    if (newline) {
        n -= (size_t)(newline + 1 - s);
        s = newline + 1;
    }
    while (n > 0 && (s[n - 1] == '\n' || s[n - 1] == '\r'))
        n--;
    term_filter_feed(&plain, s, n, out);
}

void mcp_process_put_end(const struct mcp_process *p, struct buf *out)
{
    struct buf log BUF_AUTO = BUF_INIT;
    if (!p->end.reaped)
        buf_addf(out, "the MCP server has closed its %s, but still runs (pid %ld)",
                 p->deaf ? "input" : "output", (long)p->pid);
    else if (WIFSIGNALED(p->end.status))
        buf_addf(out, "the MCP server was ended by signal %d", WTERMSIG(p->end.status));
    else
        buf_addf(out, "the MCP server has ended with exit status %d", WEXITSTATUS(p->end.status));
    mcp_process_put_log(p, LAST_WORDS, &log);
    if (log.len > 0)
        buf_addf(out, "; its last words on stderr: %s", log.data);
}
