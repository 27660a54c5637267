#include "host/run/run_remote.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "applet.h"
#include "commands/exec/run_frames.h"
#include "io.h"
#include "json.h"
#include "surroundings.h"

#define GRACE_MS 5000 /* behind --timeout, in which the other side ends it and says so */
#define ENOUGH 3      /* signals that ask for an end, until we end whatever the other side does */

enum { STATUS_LOST = 125 };

static const int passed_on[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH};

static struct {
    const char *applet, *target;
    struct loop *loop;
    struct link *link;
    struct mux_stream *stream;         /* NULL: closed */
    struct loop_source *in, *given_up; /* given_up: NULL where it has no --timeout */
    bool reads;                        /* stdin is wanted */
    bool polls;                        /* it can be waited for */
    bool terminal, raw;
    struct termios before;
    size_t held; /* bytes of stdin that the program hasn't taken */
    struct buf said;
    int status;
    int asked; /* times that we were asked to end */
} my = {.said = BUF_INIT};

static int signal_pipe[2];

/* ---- to the program ---- */

/* frame: room for a head, and n bytes behind it. */
static void say(enum run_kind kind, char *frame, size_t n)
{
    if (!my.stream || my.stream->sent_end || my.stream->room < RUN_HEAD + n)
        return;
    run_frame_head(frame, kind, n);
    mux_send(my.stream, frame, RUN_HEAD + n);
}

static void say_size(void)
{
    struct winsize w;
    if (!my.terminal || ioctl(STDIN_FILENO, TIOCGWINSZ, &w) < 0)
        return;
    char frame[RUN_HEAD + 4] = {
        [RUN_HEAD] = (char)(w.ws_row >> 8), (char)w.ws_row, (char)(w.ws_col >> 8), (char)w.ws_col};
    say(RUN_SIZE, frame, 4);
}

static void take_signal(int number)
{
    char frame[RUN_HEAD + 1] = {[RUN_HEAD] = (char)number};
    if (number == SIGWINCH) {
        say_size();
        return;
    }
    bool asks = number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGQUIT;
    if (asks && ++my.asked >= ENOUGH) {
        my.status = 128 + number;
        loop_stop(my.loop, 0);
    }
    say(RUN_SIGNAL, frame, 1);
}

static void take_signals(void)
{
    unsigned char numbers[16];
    ssize_t n = read(signal_pipe[0], numbers, sizeof numbers);
    for (ssize_t i = 0; i < n; i++)
        take_signal(numbers[i]);
    link_flush(my.link);
}

static void on_signals(void *arg, int events)
{
    (void)arg, (void)events;
    take_signals();
}

static void note(int number)
{
    int before = errno;
    unsigned char byte = (unsigned char)number;
    ssize_t ignored = write(signal_pipe[1], &byte, 1);
    (void)ignored;
    errno = before;
}

/* Those that are ignored already (nohup) stay so. None restarts a call: one that waits to write hears them.
 */
static int catch_signals(void)
{
    if (io_pipes(&signal_pipe, 1) < 0 || io_set_nonblock(signal_pipe[0], true) < 0 ||
        io_set_nonblock(signal_pipe[1], true) < 0)
        return -1;
    for (size_t i = 0; i < sizeof passed_on / sizeof *passed_on; i++) {
        struct sigaction old, mine = {.sa_handler = note};
        if (sigaction(passed_on[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaction(passed_on[i], &mine, NULL);
    }
    signal(SIGPIPE, SIG_IGN);
    loop_fd(my.loop, signal_pipe[0], LOOP_READ, on_signals, NULL);
    return 0;
}

/* ---- stdin ---- */

static void on_input(void *arg, int events);

/* As much as may be sent now. */
static size_t input_room(void)
{
    size_t room = my.stream && my.stream->room > RUN_HEAD ? my.stream->room - RUN_HEAD : 0;
    size_t free_there = RUN_STDIN_MAX - my.held;
    room = room < free_there ? room : free_there;
    return link_is_full(my.link) ? 0 : room < RUN_DATA_MAX ? room : RUN_DATA_MAX;
}

/* One read. False: there is nothing for now, or no room for it. */
static bool read_input(void)
{
    static char frame[RUN_HEAD + RUN_DATA_MAX];
    size_t room = input_room();
    if (!my.reads || room == 0)
        return false;
    ssize_t n = read(STDIN_FILENO, frame + RUN_HEAD, room);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return false;
    if (n > 0) {
        my.held += (size_t)n;
        say(RUN_STDIN, frame, (size_t)n);
        return true;
    }
    my.reads = false;
    say(RUN_STDIN, frame, 0);
    return false;
}

/* A file is read on whenever there is room. */
static void go_on(void)
{
    while (!my.polls && read_input())
        link_flush(my.link);
    bool wants = my.polls && my.reads && input_room() > 0;
    if (wants && !my.in)
        my.in = loop_fd(my.loop, STDIN_FILENO, LOOP_READ, on_input, NULL);
    else if (!wants)
        loop_drop(&my.in);
    link_flush(my.link);
}

static void on_input(void *arg, int events)
{
    (void)arg, (void)events;
    read_input();
    go_on();
}

/* ---- from the program ---- */

static void ended_with(int status)
{
    my.status = status;
    loop_stop(my.loop, 0);
}

/* Waits for whoever reads, and hears signals meanwhile. */
static void write_out(int fd, struct span data)
{
    while (data.n > 0) {
        ssize_t n = write(fd, data.s, data.n);
        if (n > 0) {
            data.s += n;
            data.n -= (size_t)n;
        } else if (n < 0 && errno == EINTR) {
            take_signals();
            if (my.asked >= ENOUGH)
                return;
        } else if (n < 0 && errno == EAGAIN) { /* somebody else has made it so */
            struct pollfd p = {.fd = fd, .events = POLLOUT};
            poll(&p, 1, -1);
        } else {
            /* Nobody reads: the end of it as of any writer into a pipe. */
            if (errno != EPIPE)
                applet_failed(my.applet, "cannot write: %s", err_text(errno));
            ended_with(errno == EPIPE ? 128 + SIGPIPE : STATUS_LOST);
            return;
        }
    }
}

static void take(enum run_kind kind, struct span data)
{
    const unsigned char *b = (const unsigned char *)data.s;
    if (kind == RUN_STDOUT || kind == RUN_STDERR)
        write_out(kind == RUN_STDOUT ? STDOUT_FILENO : STDERR_FILENO, data);
    else if (kind == RUN_TAKEN && data.n == 4)
        my.held -= mux_number(data.s);
    else if ((kind == RUN_EXIT && data.n == 1) || (kind == RUN_FAILED && data.n > 0))
        ended_with(b[0]);
    if (kind == RUN_FAILED && data.n > 0)
        applet_failed(my.applet, "%s: %.*s", my.target, (int)data.n - 1, data.s + 1);
}

static void received(void *arg, struct mux_stream *s, struct span data)
{
    enum run_kind kind;
    struct span inside;
    size_t n, whole = data.n;
    (void)arg;
    if (my.said.len > 0) {
        buf_add(&my.said, data.s, data.n);
        data = span_of(&my.said);
    }
    for (; my.status < 0 && (n = run_frame_read(data.s, data.n, &kind, &inside)) > 0;
         data.s += n, data.n -= n)
        take(kind, inside);
    if (my.said.len > 0)
        buf_consume(&my.said, my.said.len - data.n);
    else
        buf_add(&my.said, data.s, data.n);
    mux_consumed(s, whole);
    if (my.given_up && loop_timer_left(my.given_up) < GRACE_MS)
        loop_timer_set(my.given_up, GRACE_MS); /* it is still saying something */
    go_on();
}

static void on_given_up(void *arg)
{
    (void)arg;
    applet_failed(my.applet,
                  "%s: the time is over (--timeout), and the target doesn't answer: it may go on there",
                  my.target);
    ended_with(STATUS_LOST);
}

static void ended(void *arg, struct mux_stream *s)
{
    (void)arg, (void)s;
}

static void has_room(void *arg, struct mux_stream *s)
{
    (void)arg, (void)s;
    go_on();
}

static void closed(void *arg, struct mux_stream *s, struct span why)
{
    (void)arg, (void)s;
    my.stream = NULL;
    if (my.status >= 0)
        return;
    applet_failed(my.applet, "%s: %.*s", my.target, (int)why.n, why.s);
    ended_with(STATUS_LOST);
}

static void link_ended(void *arg, const char *why)
{
    (void)arg;
    if (my.status < 0)
        applet_failed(my.applet, "%s: %s", my.target, why);
    ended_with(my.status < 0 ? STATUS_LOST : my.status);
}

/* ---- life ---- */

static void put_request(struct buf *out, const struct run_request *r)
{
    struct winsize w = {0};
    buf_adds(out, "{\"run\":{\"argv\":[");
    for (char *const *word = r->argv; *word; word++) {
        buf_adds(out, word > r->argv ? "," : "");
        json_puts(out, *word);
    }
    buf_adds(out, "]");
    json_member_bool(out, "self", r->self);
    json_member_bool(out, "stdin_open", r->input);
    json_member_bool(out, "terminal", r->terminal);
    if (r->terminal && ioctl(STDIN_FILENO, TIOCGWINSZ, &w) == 0) {
        json_member_int(out, "rows", w.ws_row);
        json_member_int(out, "cols", w.ws_col);
    }
    if (r->cwd)
        json_member_string(out, "cwd", r->cwd);
    if (r->user)
        json_member_string(out, "user", r->user);
    if (r->timeout_s >= 0)
        json_member_seconds(out, "timeout", (long long)(r->timeout_s * 1000));
    surroundings_put_env(out, false, r->env);
    buf_adds(out, "}}");
}

static void set_terminal(void)
{
    if (!my.terminal || !my.reads || tcgetattr(STDIN_FILENO, &my.before) < 0)
        return;
    struct termios t = my.before;
    cfmakeraw(&t);
    my.raw = tcsetattr(STDIN_FILENO, TCSADRAIN, &t) == 0;
}

static bool can_be_waited_for(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode) || isatty(fd));
}

int run_remote(const char *applet, const char *target, const struct run_request *request, struct link *link)
{
    static const struct link_owner owner = {
        .streams = {.received = received, .ended = ended, .has_room = has_room, .closed = closed},
        .ended = link_ended};
    struct buf text BUF_AUTO = BUF_INIT;
    struct err err;
    my.applet = applet;
    my.target = target;
    my.link = link;
    my.status = -1;
    my.reads = request->input;
    my.polls = can_be_waited_for(STDIN_FILENO);
    my.terminal = request->terminal && isatty(STDIN_FILENO);
    my.loop = loop_new(&err);
    if (!my.loop || catch_signals() < 0)
        return applet_failed(applet, "cannot wait for the program: %s", my.loop ? err_text(errno) : err.msg);
    put_request(&text, request);
    if (text.len > MUX_OPEN_MAX) {
        applet_failed(applet, "the command line is too long: it may have %u bytes", MUX_OPEN_MAX);
        return STATUS_LOST;
    }
    link_begin(link, my.loop, &owner);
    my.stream = mux_open(link_mux(link), span_of(&text), NULL);
    set_terminal();
    if (request->timeout_s >= 0)
        my.given_up = loop_timer(my.loop, (int64_t)(request->timeout_s * 1000) + GRACE_MS, on_given_up, NULL);
    go_on();
    loop_run(my.loop);
    if (my.raw)
        tcsetattr(STDIN_FILENO, TCSADRAIN, &my.before);
    link_close(link);
    buf_release(&my.said);
    return my.status;
}
