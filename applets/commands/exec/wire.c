#include "wire.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fifo.h"
#include "io.h"
#include "mem.h"

#define STEP ((1u << 18) - 4 * MUX_HEAD) /* in frames: what one look at the other side's pipe takes */

struct wire {
    const struct wire_owner *owner;
    struct mux_stream *stream; /* NULL: it is over, and what is pending is still written */
    int fd;
    struct loop_source *source;
    struct fifo pending; /* for the socket */
    size_t ours;         /* bytes at its front that the stream did not bring */
    bool read_end;       /* the socket has no more */
    bool write_ends;     /* it gets no more than is pending */
    bool shut;
};

static void drop(struct wire *w)
{
    loop_drop(&w->source);
    close(w->fd);
    fifo_release(&w->pending);
    free(w);
}

/* The stream's owner frees it. */
static void broken(struct wire *w, int why)
{
    const struct wire_owner *owner = w->owner;
    if (w->stream)
        mux_abort(w->stream, err_text(why));
    else
        drop(w);
    owner->said();
}

/* What the socket takes. False: it has failed. */
static bool flush(struct wire *w)
{
    while (w->pending.len > 0) {
        ssize_t n = fifo_write(&w->pending, w->fd);
        if (n < 0 && errno != EINTR)
            return errno == EAGAIN || errno == ENOTCONN;
        size_t written = n > 0 ? (size_t)n : 0, ours = written < w->ours ? written : w->ours;
        w->ours -= ours;
        if (w->stream && written > ours)
            mux_consumed(w->stream, written - ours);
    }
    if (w->write_ends && !w->shut) {
        w->shut = true;
        shutdown(w->fd, SHUT_WR);
    }
    return true;
}

static void on_socket(void *arg, int events);

/* What wants nothing isn't watched at all: a hang-up would be told for ever. */
void wire_wait(struct wire *w)
{
    bool reads = w->stream && !w->read_end && w->owner->room(w->stream) > 0;
    int events = (reads ? LOOP_READ : 0) | (w->pending.len > 0 ? LOOP_WRITE : 0);
    if (events == 0)
        loop_drop(&w->source);
    else if (w->source)
        loop_fd_events(w->source, events);
    else
        w->source = loop_fd(w->owner->loop, w->fd, events, on_socket, w);
}

/* False: w is gone. */
static bool take(struct wire *w)
{
    static MEM_LARGE char data[STEP];
    size_t room = w->owner->room(w->stream);
    if (w->read_end || room == 0)
        return true;
    ssize_t n = read(w->fd, data, room < STEP ? room : STEP);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    if (n < 0) {
        broken(w, errno);
        return false;
    }
    if (n > 0) {
        mux_send(w->stream, data, (size_t)n);
        return true;
    }
    const struct wire_owner *owner = w->owner;
    bool last = w->stream->got_end;
    w->read_end = true;
    mux_end(w->stream); /* where it was the last one, that is the end of w */
    if (last)
        owner->said();
    return !last;
}

static void on_socket(void *arg, int events)
{
    struct wire *w = arg;
    const struct wire_owner *owner = w->owner;
    int failed = 0;
    socklen_t size = sizeof failed;
    if (events & LOOP_HANGUP && getsockopt(w->fd, SOL_SOCKET, SO_ERROR, &failed, &size) == 0 && failed) {
        broken(w, failed);
        return;
    }
    if (!flush(w)) {
        broken(w, errno);
        return;
    }
    if (!w->stream) {
        if (w->pending.len == 0)
            drop(w);
        return;
    }
    if (!take(w))
        return;
    wire_wait(w);
    owner->said();
}

struct wire *wire_new(const struct wire_owner *owner, struct mux_stream *s, int fd)
{
    struct wire *w = mem_zalloc(sizeof *w);
    *w = (struct wire){.owner = owner, .stream = s, .fd = fd, .pending = FIFO_INIT};
    wire_wait(w);
    return w;
}

bool wire_received(struct wire *w, struct span data)
{
    ssize_t n = w->pending.len > 0 ? 0 : write(w->fd, data.s, data.n);
    size_t done = n > 0 ? (size_t)n : 0;
    bool failed = n < 0 && errno != EAGAIN && errno != ENOTCONN && errno != EINTR;
    if (done > 0)
        mux_consumed(w->stream, done);
    if (!failed) {
        fifo_add(&w->pending, data.s + done, data.n - done);
        failed = !flush(w);
    }
    if (failed)
        broken(w, errno);
    else
        wire_wait(w);
    return !failed;
}

void wire_say(struct wire *w, struct span data)
{
    fifo_add(&w->pending, data.s, data.n);
    w->ours += data.n;
    wire_wait(w);
}

void wire_ended(struct wire *w)
{
    w->write_ends = true;
    if (!flush(w))
        broken(w, errno);
}

void wire_free(struct wire *w, bool whole)
{
    struct linger at_once = {.l_onoff = 1};
    if (!whole)
        setsockopt(w->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once); /* a reset is passed on as one */
    if (!whole || w->pending.len == 0) {
        drop(w);
        return;
    }
    w->stream = NULL;
    wire_wait(w);
}
