#include "host/inject/transport.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/inject/argv.h"
#include "host/inject/engine.h"
#include "io.h"
#include "memory_share.h"
#include "spawn.h"
#include "term_filter.h"
#include "utf8.h"

#define BYTES_A_MS 16 /* what the slowest connection takes: 16 KB a second */
#define READ_SIZE 65536
#define STREAM_GRACE_MS 4000 /* for a runtime to end when its stdin has */
#define GRACE_MS 1000        /* for a client whose stdin has ended before its time, to tell the other side */

int transport_init(struct transport *t, int timeout_ms, struct err *err)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    signal(SIGCHLD, SIG_DFL); /* ignored, exits would be nobody's */
    signal(SIGPIPE, SIG_IGN);
    sigprocmask(SIG_BLOCK, &set, NULL);
    *t = (struct transport){.signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK),
                            .start_dir = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC),
                            .timeout_ms = timeout_ms};
    if (t->signal_fd < 0)
        return err_sys(err, ERR_INTERNAL, errno, "cannot wait for signals");
    return 0;
}

void transport_release(struct transport *t)
{
    io_close(&t->signal_fd);
    io_close(&t->start_dir);
}

void transport_call_release(struct transport_call *c)
{
    buf_release(&c->out);
    buf_release(&c->err);
}

/* One call under way. */
struct running {
    struct transport *t;
    struct transport_call *c;
    pid_t pid; /* 0: reaped */
    int in, out, err;
    size_t part, at; /* of the input */
    bool flooded;
    struct memory_share share; /* of the memory, for the output */
    bool holds;                /* stdin is not to end yet */
    bool ended;                /* the conversation */
    int timeout_ms;
    long long until;
};

static void feed(struct running *r)
{
    struct transport_call *c = r->c;
    while (r->part < 3) {
        struct span rest = c->input[r->part];
        if (r->at < rest.n) {
            ssize_t n = write(r->in, rest.s + r->at, rest.n - r->at);
            if (n < 0 && errno == EINTR)
                continue;
            if (n < 0 && errno == EAGAIN)
                return;
            if (n < 0)
                break; /* nobody reads any more: its answer says why */
            r->at += (size_t)n;
            c->taken += (size_t)n;
        } else {
            r->part++;
            r->at = 0;
        }
    }
    if (r->part == 3 && now_ms() + r->timeout_ms > r->until)
        r->until = now_ms() + r->timeout_ms;
    if (r->part < 3 || !r->holds)
        io_close(&r->in);
}

/* There is something to write, or its end to be told. */
static bool wants_to_feed(const struct running *r)
{
    return !r->holds || r->part < 3;
}

/* What is sent takes time: as much as the slowest connection needs. */
static long long time_for(const struct running *r, int first)
{
    size_t size = 0;
    for (int i = first; i < 3; i++)
        size += r->c->input[i].n;
    return now_ms() + r->timeout_ms + (long long)(size / BYTES_A_MS);
}

static void ask(struct running *r)
{
    if (r->ended)
        return;
    enum transport_step step = r->c->answered(r->c->answered_arg, r->c);
    r->ended = step == TRANSPORT_ENDS;
    if (step == TRANSPORT_WAITS || !r->holds)
        return;
    r->part = 1;
    r->at = 0;
    r->holds = step == TRANSPORT_SENDS;
    if (time_for(r, 1) > r->until)
        r->until = time_for(r, 1);
}

/* Takes what there is; closes at the end. */
static void drain(struct running *r, int *fd, struct buf *into, bool bounded)
{
    static char chunk[READ_SIZE];
    ssize_t n = read(*fd, chunk, sizeof chunk);
    if (n > 0) {
        size_t most = bounded ? memory_share(&r->share, into->len + (size_t)n, into->max) : into->max;
        size_t room = most > into->len ? most - into->len : 0;
        if (bounded && (size_t)n > room)
            r->flooded = true;
        buf_add(into, chunk, (size_t)n < room ? (size_t)n : room);
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        io_close(fd);
    }
}

void transport_signals(struct transport *t)
{
    struct signalfd_siginfo info;
    while (read(t->signal_fd, &info, sizeof info) == sizeof info)
        if (info.ssi_signo != SIGCHLD)
            t->interrupted = (int)info.ssi_signo;
}

static void look_at_signals(struct running *r)
{
    int status;
    pid_t ended;
    transport_signals(r->t);
    do { /* it is told once only */
        ended = r->pid > 0 ? waitpid(r->pid, &status, WNOHANG) : 0;
    } while (ended < 0 && errno == EINTR);
    if (ended > 0) {
        r->c->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
        r->pid = 0;
    }
}

static bool is_readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return fd >= 0 && poll(&p, 1, 0) > 0;
}

/* Over: it has ended, and what it wrote is read. Others that hold its pipes are not waited for. */
static bool is_over(const struct running *r)
{
    return r->pid == 0 && !is_readable(r->out) && !is_readable(r->err);
}

static enum transport_end pump(struct running *r)
{
    long long impatient = r->c->impatient_ms > 0 ? now_ms() + r->c->impatient_ms : r->until;
    for (;;) {
        struct pollfd p[] = {{.fd = r->t->signal_fd, .events = POLLIN},
                             {.fd = wants_to_feed(r) ? r->in : -1, .events = POLLOUT},
                             {.fd = r->out, .events = POLLIN},
                             {.fd = r->err, .events = POLLIN}};
        long long now = now_ms(), left = r->until - now;
        if (left <= 0)
            return TRANSPORT_TIMEOUT;
        if (impatient < r->until && !r->c->impatient && impatient - now < left)
            left = impatient > now ? impatient - now : 0;
        int n = poll(p, 4, left < INT_MAX ? (int)left : INT_MAX);
        if (n < 0 && errno != EINTR)
            return TRANSPORT_FAILED;
        if (n == 0 && now_ms() >= impatient && !r->c->impatient) {
            r->c->impatient = true;
            if (r->c->answered)
                ask(r);
        }
        if (p[0].revents)
            look_at_signals(r);
        if (p[1].revents)
            feed(r);
        if (p[2].revents)
            drain(r, &r->out, &r->c->out, true);
        if (r->c->answered && p[2].revents)
            ask(r);
        if (p[3].revents)
            drain(r, &r->err, &r->c->err, false);
        if (r->flooded)
            return TRANSPORT_FLOOD;
        if (r->t->interrupted && !r->t->cleaning)
            return TRANSPORT_INTERRUPT;
        if (is_over(r))
            return TRANSPORT_ENDED;
    }
}

/* It leads a process group of its own. One whose stdin was held learns by its end that nobody waits any more,
 * and may tell the other side. */
static void end(struct running *r)
{
    if (r->in >= 0 && r->holds) {
        io_close(&r->in);
        for (long long until = now_ms() + GRACE_MS; r->pid > 0 && now_ms() < until; usleep(1000))
            look_at_signals(r);
    }
    if (r->pid > 0) {
        kill(-r->pid, SIGKILL);
        kill(r->pid, SIGKILL);
        while (waitpid(r->pid, NULL, 0) < 0 && errno == EINTR)
            continue;
    }
    io_close(&r->in);
    io_close(&r->out);
    io_close(&r->err);
}

const char *transport_over;

pid_t transport_start(int start_dir, char *const *argv, int fds[3], struct engine_direct *direct,
                      struct err *err)
{
    int pipes[3][2] = {{-1, -1}, {-1, -1}, {-1, -1}};
    const char *const programs[] = {argv[0], NULL};
    pid_t pid = -1;
    argv_freshen(argv);
    if (io_pipes(pipes, 3) < 0) {
        err_sys(err, ERR_TOOL, errno, "cannot make a pipe");
    } else {
        struct spawn s = {.programs = programs,
                          .argv = argv,
                          .env = environ, /* a runtime is the user's own program */
                          .start_dir = start_dir,
                          .fds = {pipes[0][0], pipes[1][1], pipes[2][1]}};
        transport_over = NULL;
        pid = engine_start(start_dir, argv, s.fds, direct, &transport_over);
        if (pid < 0)
            pid = spawn(&s, NULL, err);
    }
    for (int i = 0; i < 3; i++) {
        int ours = i == 0;
        io_close(&pipes[i][!ours]);
        if (pid < 0)
            io_close(&pipes[i][ours]);
        else
            io_set_nonblock(pipes[i][ours], true);
        fds[i] = pipes[i][ours];
    }
    return pid;
}

static int start(struct running *r, char *const *argv, struct err *err)
{
    int fds[3];
    pid_t pid = transport_start(r->t->start_dir, argv, fds, NULL, err);
    r->in = fds[0];
    r->out = fds[1];
    r->err = fds[2];
    r->pid = pid < 0 ? 0 : pid;
    return pid < 0 ? -1 : 0;
}

static void explain(enum transport_end how, int timeout_ms, const char *program, struct err *err)
{
    if (how == TRANSPORT_TIMEOUT)
        err_set(err, ERR_TOOL, "%s did not end within %g s and was killed (--timeout)", program,
                timeout_ms / 1000.0);
    else if (how == TRANSPORT_FLOOD)
        err_set(err, ERR_TOOL, "%s printed more than anything there has to say, and was killed", program);
    else if (how == TRANSPORT_INTERRUPT)
        err_set(err, ERR_TOOL, "interrupted");
    else if (how == TRANSPORT_FAILED)
        err_set(err, ERR_TOOL, "cannot wait for %s", program);
}

void transport_end_stream(pid_t pid, int *in)
{
    bool ended = false;
    io_close(in);
    for (long long until = now_ms() + STREAM_GRACE_MS; !ended && now_ms() < until; usleep(1000))
        ended = kill(pid, 0) < 0 || waitpid(pid, NULL, WNOHANG) != 0;
    if (!ended)
        kill(-pid, SIGKILL);
}

enum transport_end transport_run(struct transport *t, char *const *argv, struct transport_call *c,
                                 struct err *err)
{
    struct running r = {.t = t,
                        .c = c,
                        .holds = c->answered != NULL,
                        .timeout_ms = c->timeout_ms > 0 ? c->timeout_ms : t->timeout_ms};
    buf_release(&c->out);
    buf_release(&c->err);
    c->out.max = c->out_max > 0 ? c->out_max : TRANSPORT_OUT_MAX;
    c->err.max = TRANSPORT_ERR_MAX;
    c->taken = 0;
    c->impatient = false;
    t->calls++;
    if (start(&r, argv, err) < 0)
        return TRANSPORT_FAILED;
    r.until = time_for(&r, 0);
    enum transport_end how = pump(&r);
    end(&r);
    t->sent += c->taken;
    explain(how, r.timeout_ms, argv[0], err);
    return how;
}

void transport_show(struct buf *out, const char *s, size_t n, size_t max)
{
    struct term_filter filter = {0};
    struct buf plain BUF_AUTO = BUF_INIT;
    struct buf line BUF_AUTO = BUF_INIT;
    term_filter_feed(&filter, s, n, &plain);
    term_filter_reset(&filter, &plain);
    for (size_t i = 0; i < plain.len; i++) {
        bool space = (unsigned char)plain.data[i] <= ' ';
        if (!space || (line.len > 0 && line.data[line.len - 1] != ' '))
            buf_addc(&line, space ? ' ' : plain.data[i]);
    }
    while (line.len > 0 && line.data[line.len - 1] == ' ')
        buf_truncate(&line, line.len - 1);
    size_t from = line.len > max ? line.len - max : 0;
    while (from > 0 && from < line.len && ((unsigned char)line.data[from] & 0xC0) == 0x80)
        from++;
    if (from > 0)
        buf_adds(out, "…");
    buf_add(out, buf_str(&line) + from, line.len - from);
}

bool transport_hear(int fd, struct buf *said, size_t max)
{
    char data[512];
    ssize_t n = read(fd, data, sizeof data);
    if (n > 0 && said->len + (size_t)n < max)
        transport_show(said, data, (size_t)n, sizeof data);
    return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

bool transport_is_plain(const char *text)
{
    struct term_filter filter = {0};
    struct buf shown BUF_AUTO = BUF_INIT;
    term_filter_feed(&filter, text, strlen(text), &shown);
    term_filter_reset(&filter, &shown);
    return !strpbrk(text, "\t\n\r") && strcmp(buf_str(&shown), text) == 0;
}

void transport_said(const struct transport_call *c, struct buf *text)
{
    const struct buf *from =
        c->err.len > 0 ? &c->err : &c->out; /* there are runtimes that complain on stdout */
    transport_show(text, buf_str(from), from->len, 400);
}
