#include "host/run/link.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "applet.h"
#include "host/connect/connect.h"
#include "host/inject/connection.h"
#include "host/inject/inject.h"
#include "host/inject/inject_one.h"
#include "host/inject/inject_then.h"
#include "io.h"
#include "mem.h"
#include "stream.h"
#include "stream_client.h"

#define READ_STEP (1u << 18)
#define FULL (1u << 18)
#define SAID_MAX 4096
#define SILENT_TICKS 4
#define HELLO_MS 10000

struct link {
    struct loop *loop;
    struct link_owner owner;
    struct stream_client *stream;
    struct mux *mux;
    int in, out, err; /* what we write to, and read from; err -1: a connection's socket is both */
    pid_t pid;        /* of the runtime; 0: none of ours */
    struct {
        struct loop_source *in, *out, *err, *tick;
    } sources;
    size_t sent;
    int silent; /* ticks since anything was heard */
    int unsent; /* why what was to be sent is lost, but for an end of the other side's; 0: it isn't */
    struct buf said;
    bool ended, wide;
};

/* ---- the end ---- */

static void end_with(struct link *l, const char *why)
{
    if (l->ended)
        return;
    l->ended = true;
    loop_drop(&l->sources.in);
    loop_drop(&l->sources.out);
    loop_drop(&l->sources.err);
    loop_drop(&l->sources.tick);
    char *text MEM_AUTO = mem_printf("%s%s%s", why, l->said.len > 0 ? ": " : "", buf_str(&l->said));
    mux_free(l->mux);
    l->mux = NULL;
    l->owner.ended(l->owner.arg, text);
}

/* ---- bytes ---- */

static void on_writable(void *arg, int events)
{
    struct link *l = arg;
    if (events & LOOP_HANGUP)
        end_with(l, "the target's side has ended");
    else
        link_flush(l);
}

void link_flush(struct link *l)
{
    if (l->ended)
        return;
    struct buf *out = stream_client_out(l->stream);
    bool was_full = link_is_full(l);
    while (l->sent < out->len) {
        ssize_t n = write(l->in, out->data + l->sent, out->len - l->sent);
        if (n < 0 && errno == EAGAIN) {
            io_widen(l->in, &l->wide);
            break;
        }
        if (n < 0 && errno != EINTR) { /* the end is told where nobody is in the middle of something */
            l->sent = out->len;
            if (errno != EPIPE) { /* that side's own end is read */
                l->unsent = errno;
                loop_timer_set(l->sources.tick, 1);
            }
            break;
        }
        l->sent += n > 0 ? (size_t)n : 0;
    }
    if (l->sent == out->len) {
        buf_truncate(out, 0);
        l->sent = 0;
    }
    if (was_full && !link_is_full(l) && l->owner.flushed)
        l->owner.flushed(l->owner.arg);
    int write = out->len > 0 ? LOOP_WRITE : 0;
    loop_fd_events(l->sources.in, l->in == l->out ? LOOP_READ | write : write);
}

bool link_is_full(const struct link *l)
{
    return stream_client_out(l->stream)->len - l->sent >= FULL;
}

static void on_readable(void *arg, int events)
{
    static char data[READ_STEP];
    struct link *l = arg;
    if (l->in == l->out && events & LOOP_WRITE)
        link_flush(l);
    if (l->ended || !(events & (LOOP_READ | LOOP_HANGUP)))
        return;
    ssize_t n = read(l->out, data, sizeof data);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    l->silent = 0;
    if (n <= 0)
        end_with(l, "the target's side has ended");
    else if (stream_client_feed(l->stream, data, (size_t)n) < 0)
        end_with(l, "what the target's side says makes no sense");
    else
        link_flush(l);
}

static void on_stderr(void *arg, int events)
{
    struct link *l = arg;
    (void)events;
    if (!transport_hear(l->err, &l->said, SAID_MAX))
        loop_drop(&l->sources.err);
}

/* The other side says something in each; we don't, so that one who is stopped for a while is not taken for
 * dead. */
static void on_tick(void *arg)
{
    struct link *l = arg;
    loop_timer_set(l->sources.tick, STREAM_TICK_MS);
    if (l->unsent)
        end_with(l, err_text(l->unsent));
    else if (++l->silent >= SILENT_TICKS)
        end_with(l, "nothing was heard of the target for too long");
}

static void on_frame(void *arg, const struct mux_frame *f)
{
    struct link *l = arg;
    if (l->mux)
        mux_take(l->mux, f);
}

static void on_hello(void *arg, struct span params)
{
    (void)arg, (void)params;
}

static void on_answer(void *arg, void *work, struct span response)
{
    (void)arg, (void)work, (void)response;
}

/* ---- making it ---- */

static int start_runtime(void *arg, const char *applet, const struct target *t, const struct inject_result *r)
{
    struct link *l = arg;
    const char *const arguments[] = {"exec", "--stream", NULL};
    struct argv command ARGV_AUTO = {0};
    struct err err;
    int fds[3], here FD_AUTO = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (inject_command(t, r, arguments, &command, &err) < 0 ||
        (l->pid = transport_start(here, command.words, fds, NULL, &err)) < 0)
        return applet_failed(applet, "%s: %s", t->text, err.msg);
    l->in = fds[0];
    l->out = fds[1];
    l->err = fds[2];
    return EXIT_OK;
}

/* For the loop, which takes signals itself. */
static void signals_as_before(void)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static int make_ready(const char *applet, const struct inject_options *o, const struct target *t,
                      struct link *l)
{
    int interrupted, status = inject_then(applet, o, t, start_runtime, l, &interrupted);
    signals_as_before();
    return interrupted ? EXIT_BY_SIGNAL + interrupted : status;
}

static struct link *link_new(void)
{
    struct link *l = mem_zalloc(sizeof *l);
    *l = (struct link){.in = -1, .out = -1, .err = -1, .said = {.max = SAID_MAX}};
    return l;
}

/* One that is just breaking says no hello. */
static bool is_greeted(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    char first;
    return poll(&p, 1, HELLO_MS) > 0 && recv(fd, &first, 1, MSG_PEEK | MSG_DONTWAIT) == 1;
}

struct link *link_kept(const struct link_options *how, const struct target *t)
{
    int fd = how->alone ? -1 : connection_open(&how->inject, t);
    if (fd >= 0 && !is_greeted(fd))
        io_close(&fd);
    if (fd < 0)
        return NULL;
    struct link *l = link_new();
    io_set_nonblock(fd, true);
    l->in = l->out = fd;
    return l;
}

struct link *link_open(const char *applet, const struct link_options *how, const struct target *t,
                       int *status)
{
    struct link *l = how->persist_ms < 0 ? link_kept(how, t) : NULL; /* it may have to be told */
    int persist_ms = how->persist_ms;
    *status = EXIT_OK;
    if (!l && !how->alone && persist_ms == CONNECT_USUAL)
        persist_ms = connect_usual_ms(t);
    if (!l && persist_ms >= 0) {
        *status = connect_start(applet, &how->inject, t, persist_ms);
        signals_as_before();
        l = *status == EXIT_OK ? link_kept(how, t) : NULL;
    }
    if (l || *status != EXIT_OK)
        return l;
    l = link_new();
    *status = make_ready(applet, &how->inject, t, l);
    if (*status == EXIT_OK)
        return l;
    free(l);
    return NULL;
}

void link_begin(struct link *l, struct loop *loop, const struct link_owner *owner)
{
    struct stream_client_owner stream = {.hello = on_hello, .answer = on_answer, .frame = on_frame, .arg = l};
    l->loop = loop;
    l->owner = *owner;
    l->stream = stream_client_new(&stream);
    l->mux = mux_new(&owner->streams, stream_client_out(l->stream));
    l->sources.out = loop_fd(loop, l->out, LOOP_READ, on_readable, l);
    l->sources.in = l->in == l->out ? l->sources.out : loop_fd(loop, l->in, 0, on_writable, l);
    if (l->err >= 0)
        l->sources.err = loop_fd(loop, l->err, LOOP_READ, on_stderr, l);
    l->sources.tick = loop_timer(loop, STREAM_TICK_MS, on_tick, l);
}

struct mux *link_mux(struct link *l)
{
    return l->mux;
}

void link_close(struct link *l)
{
    loop_drop(&l->sources.tick);
    loop_drop(&l->sources.err);
    loop_drop(&l->sources.out);
    if (l->in != l->out)
        loop_drop(&l->sources.in);
    if (l->mux)
        mux_free(l->mux);
    stream_client_free(l->stream);
    if (l->in != l->out)
        io_close(&l->out);
    if (l->pid > 0)
        transport_end_stream(l->pid, &l->in);
    io_close(&l->in);
    io_close(&l->err);
    buf_release(&l->said);
    free(l);
}

/* ---- options ---- */

int link_option(struct link_options *how, const struct option *options, int option, const char *applet,
                const char *word)
{
    if (option == LINK_OPT_PERSIST)
        return connect_persist(applet, optarg ? optarg : "60", &how->persist_ms);
    if (option != LINK_OPT_NO_SHARE)
        return inject_option(&how->inject, options, option, applet, word);
    how->alone = true;
    return EXIT_OK;
}
