#include "host/connect/connect_remote.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "host/inject/engine.h"
#include "host/inject/transport.h"
#include "io.h"
#include "mem.h"
#include "stream.h"

#define READ_STEP 65536
#define SAID_MAX 4096 /* of what the runtime says on stderr */
#define GRACE_MS 4000 /* for the engine to say that the program has ended */

struct connect_remote {
    const struct connect_remote_owner *owner;
    struct stream_client *stream;
    pid_t pid;
    int in, out, err;
    struct loop *loop;
    struct {
        struct loop_source *in, *out, *err, *up;
    } sources;
    struct {
        struct engine_direct direct; /* until it is known whether in and out are its socket */
        struct engine_frames frames;
        bool framed; /* they are */
    } engine;
    size_t sent;
    struct buf said;
    bool stalls, ended, wide;
};

static void end_with(struct connect_remote *r, const char *why)
{
    if (r->ended)
        return;
    r->ended = true;
    loop_drop(&r->sources.in);
    loop_drop(&r->sources.out);
    loop_drop(&r->sources.err);
    loop_drop(&r->sources.up);
    r->owner->ended(why);
}

void connect_remote_flush(struct connect_remote *r)
{
    struct buf *out = stream_client_out(r->stream);
    if (r->sources.up)
        return;
    while (r->sent < out->len && !r->ended) {
        ssize_t n = write(r->in, out->data + r->sent, out->len - r->sent);
        if (n < 0 && errno != EAGAIN && errno != EINTR)
            end_with(r, "the target's side takes nothing more");
        if (n < 0 && errno == EAGAIN) {
            io_widen(r->in, &r->wide);
            break;
        }
        r->sent += n > 0 ? (size_t)n : 0;
    }
    if (r->ended)
        return;
    if (r->sent == out->len) {
        buf_truncate(out, 0);
        if (out->cap > STREAM_IN_KEPT)
            buf_release(out);
        r->sent = 0;
    }
    loop_fd_events(r->sources.in, out->len > 0 ? LOOP_WRITE : 0);
    bool stalls = out->len - r->sent >= STREAM_OUT_FULL;
    if (stalls == r->stalls)
        return;
    r->stalls = stalls;
    r->owner->stalls(stalls);
}

static void on_writable(void *arg, int events)
{
    if (events & LOOP_HANGUP)
        end_with(arg, "the target's side has ended");
    else
        connect_remote_flush(arg);
}

/* -1: it is none of ours. */
static int take_frames(struct connect_remote *r, const char *data, size_t n)
{
    struct engine_frames *f = &r->engine.frames;
    int result = 0;
    for (size_t at = 0, step; result == 0 && (step = engine_frame_bytes(f, data, &at, n)) > 0; at += step) {
        f->left -= step;
        if (f->to == STDOUT_FILENO)
            result = stream_client_feed(r->stream, data + at, step);
        else if (r->said.len + step < SAID_MAX)
            transport_show(&r->said, data + at, step, SAID_MAX);
    }
    return result;
}

static int take(struct connect_remote *r, const char *data, size_t n)
{
    return r->engine.framed ? take_frames(r, data, n) : stream_client_feed(r->stream, data, n);
}

static void on_readable(void *arg, int events)
{
    static char data[READ_STEP];
    struct connect_remote *r = arg;
    (void)events;
    ssize_t n = read(r->out, data, sizeof data);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0)
        end_with(r, "the target's side has ended");
    else if (take(r, data, (size_t)n) < 0)
        end_with(r, "what the target's side says makes no sense");
    else
        r->owner->heard();
    connect_remote_flush(r);
}

static void on_stderr(void *arg, int events)
{
    struct connect_remote *r = arg;
    (void)events;
    if (!transport_hear(r->err, &r->said, SAID_MAX))
        loop_drop(&r->sources.err);
}

void connect_remote_tick(struct connect_remote *r)
{
    if (!stream_client_tick(r->stream))
        end_with(r, "nothing was heard of the target for too long");
    connect_remote_flush(r);
    if (stream_client_out(r->stream)->len == 0)
        buf_release(stream_client_out(r->stream));
}

static void watch(struct connect_remote *r)
{
    r->sources.in = loop_fd(r->loop, r->in, 0, on_writable, r);
    r->sources.out = loop_fd(r->loop, r->out, LOOP_READ, on_readable, r);
    if (r->err >= 0)
        r->sources.err = loop_fd(r->loop, r->err, LOOP_READ, on_stderr, r);
}

/* Nothing was sent before: it would have been for the pipes. */
static void on_up(void *arg, int events)
{
    struct connect_remote *r = arg;
    char byte;
    (void)events;
    r->engine.framed = read(r->engine.direct.up, &byte, 1) == 1;
    loop_drop(&r->sources.up);
    io_close(&r->engine.direct.up);
    if (r->engine.framed) {
        io_close(&r->in);
        io_close(&r->out);
        io_close(&r->err);
        r->in = r->engine.direct.socket;
        r->out = fcntl(r->in, F_DUPFD_CLOEXEC, 3);
        r->engine.direct.socket = -1;
    }
    io_close(&r->engine.direct.socket);
    watch(r);
    connect_remote_flush(r);
}

struct connect_remote *connect_remote_start(struct loop *loop, char *const *command,
                                            const struct connect_remote_owner *owner, struct err *err)
{
    struct engine_direct direct = {-1, -1};
    int fds[3], here FD_AUTO = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    pid_t pid = transport_start(here, command, fds, &direct, err);
    if (pid < 0)
        return NULL;
    struct connect_remote *r = mem_zalloc(sizeof *r);
    *r = (struct connect_remote){.owner = owner,
                                 .stream = stream_client_new(&owner->stream),
                                 .pid = pid,
                                 .in = fds[0],
                                 .out = fds[1],
                                 .err = fds[2],
                                 .loop = loop,
                                 .engine.direct = direct,
                                 .said = {.max = SAID_MAX}};
    if (direct.up >= 0)
        r->sources.up = loop_fd(loop, direct.up, LOOP_READ, on_up, r);
    else
        watch(r);
    return r;
}

struct stream_client *connect_remote_stream(struct connect_remote *r)
{
    return r->stream;
}

const char *connect_remote_said(const struct connect_remote *r)
{
    return buf_str(&r->said);
}

/* Its stdin ends, by which the target's side learns of it. */
static void end_program(const struct connect_remote *r)
{
    struct buf rest BUF_AUTO = {.max = READ_STEP};
    shutdown(r->in, SHUT_WR);
    io_read_within(r->out, GRACE_MS, &rest);
}

void connect_remote_free(struct connect_remote *r)
{
    loop_drop(&r->sources.in);
    loop_drop(&r->sources.out);
    loop_drop(&r->sources.err);
    loop_drop(&r->sources.up);
    if (r->engine.framed)
        end_program(r);
    io_close(&r->out);
    transport_end_stream(r->pid, &r->in);
    io_close(&r->err);
    io_close(&r->engine.direct.up);
    io_close(&r->engine.direct.socket);
    stream_client_free(r->stream);
    buf_release(&r->said);
    free(r);
}
