#include "host/connect/connect_remote.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "host/inject/transport.h"
#include "io.h"
#include "mem.h"
#include "stream.h"

#define READ_STEP 65536
#define SAID_MAX 4096 /* of what the runtime says on stderr */

struct connect_remote {
    const struct connect_remote_owner *owner;
    struct stream_client *stream;
    pid_t pid;
    int in, out, err;
    struct loop_source *in_source, *out_source, *err_source;
    size_t sent;
    struct buf said;
    bool stalls, ended, wide;
};

static void end_with(struct connect_remote *r, const char *why)
{
    if (r->ended)
        return;
    r->ended = true;
    loop_drop(&r->in_source);
    loop_drop(&r->out_source);
    loop_drop(&r->err_source);
    r->owner->ended(why);
}

void connect_remote_flush(struct connect_remote *r)
{
    struct buf *out = stream_client_out(r->stream);
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
    loop_fd_events(r->in_source, out->len > 0 ? LOOP_WRITE : 0);
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
    else if (stream_client_feed(r->stream, data, (size_t)n) < 0)
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
        loop_drop(&r->err_source);
}

void connect_remote_tick(struct connect_remote *r)
{
    if (!stream_client_tick(r->stream))
        end_with(r, "nothing was heard of the target for too long");
    connect_remote_flush(r);
    if (stream_client_out(r->stream)->len == 0)
        buf_release(stream_client_out(r->stream));
}

struct connect_remote *connect_remote_start(struct loop *loop, char *const *command,
                                            const struct connect_remote_owner *owner, struct err *err)
{
    int fds[3], here FD_AUTO = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    pid_t pid = transport_start(here, command, fds, err);
    if (pid < 0)
        return NULL;
    struct connect_remote *r = mem_zalloc(sizeof *r);
    *r = (struct connect_remote){.owner = owner,
                                 .stream = stream_client_new(&owner->stream),
                                 .pid = pid,
                                 .in = fds[0],
                                 .out = fds[1],
                                 .err = fds[2],
                                 .said = {.max = SAID_MAX}};
    r->in_source = loop_fd(loop, r->in, 0, on_writable, r);
    r->out_source = loop_fd(loop, r->out, LOOP_READ, on_readable, r);
    r->err_source = loop_fd(loop, r->err, LOOP_READ, on_stderr, r);
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

void connect_remote_free(struct connect_remote *r)
{
    loop_drop(&r->in_source);
    loop_drop(&r->out_source);
    loop_drop(&r->err_source);
    io_close(&r->out);
    transport_end_stream(r->pid, &r->in);
    io_close(&r->err);
    stream_client_free(r->stream);
    buf_release(&r->said);
    free(r);
}
