#include "run_end.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fifo.h"
#include "io.h"
#include "mem.h"
#include "pty.h"
#include "run_begin.h"
#include "run_frames.h"
#include "run_keeper.h"

#define STATUS_LOST 125
#define AGAIN_MS 250 /* until the key that ends input is typed again; then twice as long each time */
#define AGAIN_MOST_MS 10000

/* stdout or stderr; of a terminal the first is both. */
struct run_out {
    struct run *run;
    enum run_kind kind;
    int fd; /* -1: at its end */
    struct loop_source *source;
    bool wide;
};

/* stdin, or what is typed at a terminal. */
struct run_in {
    int fd; /* -1: closed */
    struct loop_source *source;
    struct fifo waiting;
    struct loop_source *again; /* the key that ends input is typed then */
    int again_ms;
    bool ends, open_line, wide;
    size_t taken; /* bytes that are gone and were not told */
};

struct run {
    const struct end_kind *kind;
    struct mux_stream *stream;
    struct run_out out[2];
    struct run_in in;
    int control; /* -1: closed */
    struct loop_source *control_source;
    int slave; /* of a terminal: without it, who closes its end before he ends is hung up on; -1: none */
    bool terminal;
    bool exited; /* what is readable by now is all that counts */
    bool ended;  /* and was told */
    struct run_told told;
    struct buf said; /* a frame that isn't all there yet */
};

/* ---- to the caller ---- */

static void say(struct run *r, enum run_kind kind, const void *data, size_t n)
{
    char head[RUN_HEAD];
    run_frame_head(head, kind, n);
    mux_send(r->stream, head, sizeof head);
    mux_send(r->stream, data, n);
}

/* What is small is said where there is room for it, whether the output is full or not. */
static bool has_room_for(const struct run *r, size_t n)
{
    return r->stream->room >= RUN_HEAD + n;
}

static void say_end(struct run *r)
{
    char text[1 + sizeof r->told.err.msg] = {(char)r->told.status};
    size_t n = 1;
    if (r->told.failed) {
        size_t length = strlen(r->told.err.msg);
        memcpy(text + 1, r->told.err.msg, length);
        n += length;
    }
    if (r->ended || !has_room_for(r, n))
        return;
    r->ended = true;
    say(r, r->told.failed ? RUN_FAILED : RUN_EXIT, text, n);
    mux_end(r->stream); /* may be the end of r */
}

static void close_out(struct run_out *o)
{
    struct run *r = o->run;
    loop_drop(&o->source);
    if (r->in.fd == o->fd) { /* the same terminal */
        loop_drop(&r->in.source);
        io_close(&r->slave);
        r->in.fd = -1;
    }
    io_close(&o->fd);
}

/* One read. False: there is nothing for now, nor room for it. */
static bool read_out(struct run_out *o)
{
    static MEM_LARGE char data[RUN_HEAD + RUN_DATA_MAX];
    struct run *r = o->run;
    size_t room = ends_room(r->stream);
    if (o->fd < 0 || room <= RUN_HEAD)
        return false;
    size_t most = room - RUN_HEAD < RUN_DATA_MAX ? room - RUN_HEAD : RUN_DATA_MAX;
    ssize_t n = read(o->fd, data + RUN_HEAD, most);
    if (n == RUN_DATA_MAX)
        io_widen(o->fd, &o->wide);
    if (n > 0) {
        run_frame_head(data, o->kind, (size_t)n);
        mux_send(r->stream, data, RUN_HEAD + (size_t)n);
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR) || r->exited) {
        close_out(o);
    }
    return n > 0;
}

/* Behind its end the program has said what can be read, whoever else holds the pipes. */
static void drain(struct run *r)
{
    for (int i = 0; i < 2; i++)
        while (read_out(&r->out[i]))
            ;
    if (r->out[0].fd < 0 && r->out[1].fd < 0)
        say_end(r);
}

static void on_out(void *arg, int events);

static void say_taken(struct run *r)
{
    size_t n = r->in.taken;
    char bytes[4];
    if (n == 0 || !has_room_for(r, sizeof bytes))
        return;
    mux_put_number(bytes, (uint32_t)n);
    r->in.taken = 0;
    say(r, RUN_TAKEN, bytes, sizeof bytes);
}

/* Without room it isn't watched at all: that nobody holds the other end any more would be told for ever. */
static void watch_out(struct run_out *o, bool room)
{
    if (o->fd >= 0 && room && !o->source)
        o->source = loop_fd(ends.loop, o->fd, LOOP_READ, on_out, o);
    else if (!room)
        loop_drop(&o->source);
}

static void wait_for_room(struct mux_stream *s)
{
    struct run *r = s->work;
    bool room = ends_room(s) > RUN_HEAD;
    say_taken(r);
    watch_out(&r->out[0], room);
    watch_out(&r->out[1], room);
    if (r->exited && room)
        drain(r);
}

static void on_out(void *arg, int events)
{
    struct run_out *o = arg;
    (void)events;
    read_out(o);
    wait_for_room(o->run->stream);
    ends.said();
}

/* ---- stdin ---- */

static void close_in(struct run *r)
{
    loop_drop(&r->in.source);
    if (r->in.fd != r->out[0].fd)
        io_close(&r->in.fd);
    r->in.fd = -1;
}

static void on_in(void *arg, int events);

/* What the program doesn't want any more counts as taken. */
static void feed(struct run *r)
{
    size_t before = r->in.waiting.len;
    while (r->in.waiting.len > 0 && r->in.fd >= 0) {
        ssize_t n = fifo_write(&r->in.waiting, r->in.fd);
        if (n < 0 && errno == EAGAIN) {
            io_widen(r->in.fd, &r->in.wide);
            break;
        }
        if (n < 0 && errno != EINTR)
            close_in(r);
    }
    if (r->in.fd < 0)
        fifo_release(&r->in.waiting);
    r->in.taken += before - r->in.waiting.len;
    if (r->in.taken >= RUN_TAKEN_LEAST)
        say_taken(r);
    if (r->in.waiting.len == 0 && r->in.ends && r->in.fd >= 0 && !r->terminal)
        close_in(r);
    if (r->in.fd >= 0 && r->in.waiting.len > 0 && !r->in.source)
        r->in.source = loop_fd(ends.loop, r->in.fd, LOOP_WRITE, on_in, r);
    else if (r->in.waiting.len == 0)
        loop_drop(&r->in.source);
}

static void on_in(void *arg, int events)
{
    struct run *r = arg;
    (void)events;
    feed(r);
    ends.said();
}

/* Of a terminal: behind the beginning of a line the key delivers what is there, and ends it the second time.
 */
static void type_end(struct run *r)
{
    char key = pty_end_key(r->in.fd);
    for (int n = r->in.open_line ? 2 : 1; n > 0; n--)
        fifo_add(&r->in.waiting, &key, 1);
    r->in.open_line = false;
    feed(r);
}

/* A key that was typed before a program has made the terminal its own is lost to it. */
static void on_again(void *arg)
{
    struct run *r = arg;
    if (r->in.fd >= 0 && r->in.waiting.len == 0)
        type_end(r);
    r->in.again_ms = r->in.again_ms * 2 < AGAIN_MOST_MS ? r->in.again_ms * 2 : AGAIN_MOST_MS;
    loop_timer_set(r->in.again, r->in.again_ms);
}

static void end_input(struct run *r)
{
    if (r->terminal && !r->in.ends && r->in.fd >= 0) {
        type_end(r);
        r->in.again_ms = AGAIN_MS;
        r->in.again = loop_timer(ends.loop, AGAIN_MS, on_again, r);
    }
    r->in.ends = true;
}

static void take_input(struct run *r, struct span data)
{
    if (data.n > 0)
        r->in.open_line = data.s[data.n - 1] != '\n';
    ssize_t n = r->in.fd >= 0 && r->in.waiting.len == 0 ? write(r->in.fd, data.s, data.n) : 0;
    size_t done = n > 0 ? (size_t)n : 0; /* feed does the rest */
    r->in.taken += done;
    fifo_add(&r->in.waiting, data.s + done, data.n - done);
}

/* ---- from the caller ---- */

static void resize(struct run *r, struct span size)
{
    const unsigned char *b = (const unsigned char *)size.s;
    struct pty terminal = {.master = r->out[0].fd, .slave = -1};
    if (size.n == 4 && r->terminal && terminal.master >= 0)
        pty_resize(&terminal, (unsigned short)(b[0] << 8 | b[1]), (unsigned short)(b[2] << 8 | b[3]));
}

/* False: it breaks the rules. */
static bool take(struct run *r, enum run_kind kind, struct span data)
{
    if (kind == RUN_STDIN && data.n == 0)
        end_input(r);
    else if (kind == RUN_STDIN && r->in.waiting.len + data.n > RUN_STDIN_MAX)
        return false;
    else if (kind == RUN_STDIN)
        take_input(r, data);
    else if (kind == RUN_SIGNAL && data.n == 1)
        send(r->control, data.s, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    else if (kind == RUN_SIZE)
        resize(r, data);
    return true;
}

static void run_free(struct run *r)
{
    close_in(r);
    close_out(&r->out[0]);
    close_out(&r->out[1]);
    io_close(&r->slave);
    loop_drop(&r->in.again);
    loop_drop(&r->control_source);
    io_close(&r->control); /* by which its keeper learns of it */
    fifo_release(&r->in.waiting);
    buf_release(&r->said);
    free(r);
}

static void received(struct mux_stream *s, struct span data)
{
    struct run *r = s->work;
    enum run_kind kind;
    struct span inside;
    bool fits = true;
    size_t n, whole = data.n;
    if (r->said.len > 0) {
        buf_add(&r->said, data.s, data.n);
        data = span_of(&r->said);
    }
    for (; fits && (n = run_frame_read(data.s, data.n, &kind, &inside)) > 0; data.s += n, data.n -= n)
        fits = take(r, kind, inside);
    if (r->said.len > 0)
        buf_consume(&r->said, r->said.len - data.n);
    else
        buf_add(&r->said, data.s, data.n);
    mux_consumed(s, whole);
    if (fits && r->said.len <= RUN_HEAD + RUN_DATA_MAX) {
        feed(r);
        return;
    }
    run_free(r);
    mux_reset(s, "more stdin came than there is room for");
}

static void ended(struct mux_stream *s)
{
    struct run *r = s->work;
    end_input(r);
    feed(r);
}

static void closed(struct mux_stream *s)
{
    run_free(s->work);
}

/* ---- life ---- */

static void on_control(void *arg, int events)
{
    struct run *r = arg;
    (void)events;
    ssize_t n = recv(r->control, &r->told, sizeof r->told, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n != sizeof r->told) {
        r->told = (struct run_told){.failed = true, .status = STATUS_LOST};
        err_set(&r->told.err, ERR_TOOL, "the process that kept it was killed, and so it may go on");
    }
    r->exited = true;
    loop_drop(&r->in.again);
    loop_drop(&r->control_source);
    drain(r);
    ends.said();
}

static struct run *run_new(struct mux_stream *s, const struct run_begun *b)
{
    struct run *r = mem_zalloc(sizeof *r);
    *r = (struct run){
        .kind = &run_end,
        .stream = s,
        .out = {{r, RUN_STDOUT, b->out[0], NULL, false}, {r, RUN_STDERR, b->out[1], NULL, false}},
        .in = {.fd = b->in, .waiting = FIFO_INIT},
        .control = b->control,
        .slave = b->slave,
        .terminal = b->terminal,
        .said = BUF_INIT};
    return r;
}

static int begin(struct mux_stream *s, struct span params, struct err *err)
{
    struct run_begun begun;
    if (run_begin(&begun, params, err) < 0)
        return -1;
    struct run *r = run_new(s, &begun);
    s->work = r;
    r->control_source = loop_fd(ends.loop, r->control, LOOP_READ, on_control, r);
    wait_for_room(s);
    if (!begun.stdin_open)
        end_input(r);
    return 0;
}

const struct end_kind run_end = {.name = "run",
                                 .begin = begin,
                                 .received = received,
                                 .ended = ended,
                                 .wait = wait_for_room,
                                 .closed = closed};
