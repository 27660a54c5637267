#include "run_end.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fifo.h"
#include "io.h"
#include "mem.h"
#include "params.h"
#include "pty.h"
#include "run_frames.h"
#include "run_keeper.h"
#include "self.h"
#include "spawn.h"
#include "user_param.h"

#define SECONDS_MAX 1e9
#define TERMINAL_MAX 65535
#define STATUS_LOST 125
#define AGAIN_MS 250 /* until the key that ends input is typed again; then twice as long each time */
#define AGAIN_MOST_MS 10000

struct run_params {
    struct texts argv, env;
    struct text cwd;
    struct user_param user;
    bool stdin_open, terminal, self;
    long long rows, cols;
    double timeout_s;
};

#define AT(member) offsetof(struct run_params, member)
static const struct param list[] = {
    {.key = "argv", .type = PARAM_NAMES, .offset = AT(argv), .required = true},
    {.key = "env", .type = PARAM_ENV, .offset = AT(env)},
    {.key = "cwd", .type = PARAM_NAME, .offset = AT(cwd)},
    {.key = "user", .type = PARAM_USER, .offset = AT(user)},
    {.key = "stdin_open", .type = PARAM_BOOL, .offset = AT(stdin_open)},
    {.key = "terminal", .type = PARAM_BOOL, .offset = AT(terminal)},
    {.key = "self", .type = PARAM_BOOL, .offset = AT(self)},
    {.key = "rows", .type = PARAM_INT, .offset = AT(rows), .max = TERMINAL_MAX},
    {.key = "cols", .type = PARAM_INT, .offset = AT(cols), .max = TERMINAL_MAX},
    {.key = "timeout", .type = PARAM_NUMBER, .offset = AT(timeout_s), .max = SECONDS_MAX},
};
static const struct params_table table = PARAMS_TABLE(list);

/* stdout or stderr; of a terminal the first is both. */
struct run_out {
    struct run *run;
    enum run_kind kind;
    int fd; /* -1: at its end */
    struct loop_source *source;
    bool wide;
};

struct run {
    const struct end_kind *kind;
    struct mux_stream *stream;
    struct run_out out[2];
    int in, control; /* -1: closed */
    int slave; /* of a terminal: without it, who closes its end before he ends is hung up on; -1: none */
    struct loop_source *in_source, *control_source;
    struct fifo input;
    struct loop_source *again; /* the key that ends input is typed then */
    int again_ms;
    bool input_ends, open_line, terminal, wide;
    size_t taken; /* bytes of it that are gone and were not told */
    bool exited;  /* what is readable by now is all that counts */
    bool ended;   /* and was told */
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
    if (r->in == o->fd) { /* the same terminal */
        loop_drop(&r->in_source);
        io_close(&r->slave);
        r->in = -1;
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
    size_t n = r->taken;
    char bytes[4];
    if (n == 0 || !has_room_for(r, sizeof bytes))
        return;
    mux_put_number(bytes, (uint32_t)n);
    r->taken = 0;
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
    loop_drop(&r->in_source);
    if (r->in != r->out[0].fd)
        io_close(&r->in);
    r->in = -1;
}

static void on_in(void *arg, int events);

/* What the program doesn't want any more counts as taken. */
static void feed(struct run *r)
{
    size_t before = r->input.len;
    while (r->input.len > 0 && r->in >= 0) {
        ssize_t n = fifo_write(&r->input, r->in);
        if (n < 0 && errno == EAGAIN) {
            io_widen(r->in, &r->wide);
            break;
        }
        if (n < 0 && errno != EINTR)
            close_in(r);
    }
    if (r->in < 0)
        fifo_release(&r->input);
    r->taken += before - r->input.len;
    if (r->taken >= RUN_TAKEN_LEAST)
        say_taken(r);
    if (r->input.len == 0 && r->input_ends && r->in >= 0 && !r->terminal)
        close_in(r);
    if (r->in >= 0 && r->input.len > 0 && !r->in_source)
        r->in_source = loop_fd(ends.loop, r->in, LOOP_WRITE, on_in, r);
    else if (r->input.len == 0)
        loop_drop(&r->in_source);
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
    char key = pty_end_key(r->in);
    for (int n = r->open_line ? 2 : 1; n > 0; n--)
        fifo_add(&r->input, &key, 1);
    r->open_line = false;
    feed(r);
}

/* A key that was typed before a program has made the terminal its own is lost to it. */
static void on_again(void *arg)
{
    struct run *r = arg;
    if (r->in >= 0 && r->input.len == 0)
        type_end(r);
    r->again_ms = r->again_ms * 2 < AGAIN_MOST_MS ? r->again_ms * 2 : AGAIN_MOST_MS;
    loop_timer_set(r->again, r->again_ms);
}

static void end_input(struct run *r)
{
    if (r->terminal && !r->input_ends && r->in >= 0) {
        type_end(r);
        r->again_ms = AGAIN_MS;
        r->again = loop_timer(ends.loop, AGAIN_MS, on_again, r);
    }
    r->input_ends = true;
}

static void take_input(struct run *r, struct span data)
{
    if (data.n > 0)
        r->open_line = data.s[data.n - 1] != '\n';
    ssize_t n = r->in >= 0 && r->input.len == 0 ? write(r->in, data.s, data.n) : 0;
    size_t done = n > 0 ? (size_t)n : 0; /* feed does the rest */
    r->taken += done;
    fifo_add(&r->input, data.s + done, data.n - done);
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
    else if (kind == RUN_STDIN && r->input.len + data.n > RUN_STDIN_MAX)
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
    loop_drop(&r->again);
    loop_drop(&r->control_source);
    io_close(&r->control); /* by which its keeper learns of it */
    fifo_release(&r->input);
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
    loop_drop(&r->again);
    loop_drop(&r->control_source);
    drain(r);
    ends.said();
}

/* The program's own ends are in start->fds; ours in *r. */
static int open_ends(struct run *r, const struct run_params *p, const struct user *user,
                     struct run_start *start, struct err *err)
{
    int pipes[3][2] = {{-1, -1}, {-1, -1}, {-1, -1}};
    struct pty terminal = PTY_INIT;
    if (p->terminal) {
        if (pty_open(&terminal, (unsigned short)p->rows, (unsigned short)p->cols, user, err) < 0)
            return -1;
        pty_make_plain(&terminal);
        for (int i = 0; i < 3; i++)
            start->fds[i] = i == 0 ? terminal.slave : fcntl(terminal.slave, F_DUPFD_CLOEXEC, 3);
        r->in = r->out[0].fd = terminal.master;
        r->slave = fcntl(terminal.slave, F_DUPFD_CLOEXEC, 3);
        return 0;
    }
    if (io_pipes(pipes + (p->stdin_open ? 0 : 1), p->stdin_open ? 3 : 2) < 0) {
        err_sys(err, ERR_TOOL, errno, "cannot make a pipe");
        for (int i = 0; i < 6; i++)
            io_close(&pipes[i / 2][i % 2]);
        return -1;
    }
    for (int i = 0; i < 3; i++)
        start->fds[i] = pipes[i][i == 0 ? 0 : 1];
    if (pipes[0][1] >= 0)
        r->in = io_take(&pipes[0][1]);
    r->out[0].fd = io_take(&pipes[1][0]);
    r->out[1].fd = io_take(&pipes[2][0]);
    return 0;
}

/* With `self` in front the program that we are, which is freed. */
static char **words_of(const struct run_params *p)
{
    char **words = mem_alloc((p->argv.n + 2) * sizeof *words);
    if (p->self)
        words[0] = self_path();
    memcpy(words + p->self, p->argv.list, (p->argv.n + 1) * sizeof *words);
    return words;
}

/* What is added to our environment; for `self` also what of it is ours alone, and otherwise left out. */
static char **env_of(const struct run_params *p, const struct user *user)
{
    size_t ours = 0;
    while (p->self && environ[ours])
        ours++;
    char **extra MEM_AUTO = mem_alloc((ours + p->env.n + 1) * sizeof *extra);
    memcpy(extra, environ, ours * sizeof *extra);
    for (size_t i = 0; i < p->env.n; i++)
        extra[ours + i] = p->env.list[i];
    extra[ours + p->env.n] = NULL;
    return spawn_env(environ, extra, user);
}

static int start(struct run *r, const struct run_params *p, const struct user *user, struct err *err)
{
    char **env = env_of(p, user);
    char **argv MEM_AUTO = words_of(p), *own MEM_AUTO = p->self ? argv[0] : NULL;
    struct run_start how = {.argv = argv,
                            .env = env,
                            .cwd = p->cwd.s,
                            .user = user,
                            .fds = {-1, -1, -1},
                            .terminal = p->terminal,
                            .timeout_ms = p->timeout_s < 0 ? -1 : (long long)(p->timeout_s * 1000),
                            .descriptors = ends.descriptors};
    (void)own; /* freed at the end */
    if (!argv[0])
        err_set(err, ERR_TOOL, "this program can't tell its own path");
    else if (open_ends(r, p, user, &how, err) == 0)
        r->control = run_keeper_start(ends.loop, &how, err);
    for (int i = 0; i < 3; i++)
        io_close(&how.fds[i]);
    spawn_env_free(env);
    return r->control < 0 ? -1 : 0;
}

static struct run *run_new(struct mux_stream *s, const struct run_params *p)
{
    struct run *r = mem_zalloc(sizeof *r);
    *r = (struct run){.kind = &run_end,
                      .stream = s,
                      .out = {{r, RUN_STDOUT, -1, NULL, false}, {r, RUN_STDERR, -1, NULL, false}},
                      .in = -1,
                      .control = -1,
                      .slave = -1,
                      .input = FIFO_INIT,
                      .terminal = p->terminal,
                      .said = BUF_INIT};
    return r;
}

static int begin(struct mux_stream *s, struct span params, struct err *err)
{
    struct run_params p = {.timeout_s = -1};
    struct user user = {0};
    bool other = false;
    if (params_unpack(&table, params, &p, err) < 0)
        return -1;
    int result = p.argv.n > 0 ? user_param_wanted(&p.user, &user, &other, err)
                              : err_set(err, ERR_PARAMS, "Invalid parameters: argv: names no program");
    if (result == 0) {
        struct run *r = run_new(s, &p);
        result = start(r, &p, other ? &user : NULL, err);
        if (result == 0) {
            s->work = r;
            r->control_source = loop_fd(ends.loop, r->control, LOOP_READ, on_control, r);
            wait_for_room(s);
            if (!p.stdin_open)
                end_input(r);
        } else {
            run_free(r);
        }
    }
    if (other)
        user_release(&user);
    params_release(&table, &p);
    return result;
}

const struct end_kind run_end = {.name = "run",
                                 .begin = begin,
                                 .received = received,
                                 .ended = ended,
                                 .wait = wait_for_room,
                                 .closed = closed};
