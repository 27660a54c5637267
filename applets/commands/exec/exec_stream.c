#include "exec_stream.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "applet.h"
#include "client.h"
#include "ends.h"
#include "follow.h"
#include "io.h"
#include "ipc.h"
#include "mem.h"
#include "route.h"
#include "rpc.h"
#include "policy_rules.h"
#include "commands/server/server.h"
#include "stream.h"
#include "stream_child.h"
#include "tool.h"

#define READ_STEP 65536
#define LONG 4096 /* bytes of an answer that may have had its turn */
#define OPEN_MAX 1024
#define OTHER_FDS 64u /* that are open beside those of calls */
#define ENDS_FULL                                                                                            \
    (1u << 18)        /* unsent bytes from which on byte streams wait: what is short is said behind them */
#define REST_MS 1000  /* from a tick until what has been mapped for it is let go */
#define GRACE_MS 2000 /* for what is open at the end of input */
#define STEP_MS 1     /* between pieces of a file, which can't be waited for */
#define RETRIES 20    /* of a call that a server had not taken when it ended */

static struct {
    struct loop *loop;
    struct stream *stream;
    struct loop_source *in, *out, *tick, *rest;
    bool wide;   /* the output */
    bool steps;  /* the input is a file */
    bool stalls; /* the output is full */
    bool ended;  /* the input */
    bool turns;  /* others may have waited for one that has ended */
    struct exchange *turn;
    int server;                  /* a connection over which nothing is under way; -1: none */
    size_t sent;                 /* of the output */
    struct rlimit given, raised; /* of descriptors */
} my = {.server = -1};

/* One call that another process answers. */
struct work {
    struct stream_call *call;
    struct client *client;
    struct stream_child *child; /* which answers instead; NULL: none */
    struct span text;           /* of the request */
    struct buf next;            /* the memory of that, where it isn't the call's own */
    struct buf cursor;          /* of one that is followed: where the next event begins */
    struct method method;
    bool follows;
    bool query;  /* by whose delivery nothing changes: the next one goes over the same connection */
    bool keeper; /* whom it was sent to */
    int retries;
};

/* ---- calls ---- */

static void on_answer(void *arg, struct span answer, const struct err *err);
static void go_on(void);

/* A server that is started here is not to have our limit. */
static int connect_server(bool query, struct err *err)
{
    struct place place PLACE_AUTO = PLACE_INIT;
    int fd = query ? my.server : -1;
    if (fd >= 0)
        my.server = -1;
    else
        fd = ipc_find(&place, IPC_SERVER);
    if (fd >= 0)
        return fd;
    setrlimit(RLIMIT_NOFILE, &my.given);
    fd = server_connect(err);
    setrlimit(RLIMIT_NOFILE, &my.raised);
    return fd;
}

static void fail(struct work *w, const struct err *err)
{
    struct buf text BUF_AUTO = BUF_INIT;
    rpc_put_error(&text, w->call->id, err);
    stream_answer(w->call, span_of(&text), false);
}

/* To the keeper, where one is for it and lives, else to the server. */
static void send_on(struct work *w, struct span params, bool to_keeper)
{
    struct err err;
    int fd = to_keeper ? route_keeper(&w->method, params) : -1;
    w->keeper = fd >= 0;
    if (fd < 0)
        fd = connect_server(w->query, &err);
    if (fd < 0) {
        fail(w, &err);
        return;
    }
    w->client = client_start(my.loop, fd, w->text, -1, on_answer, w);
    client_take_turns(w->client, &my.turn);
}

/* It is asked again where nobody can have taken the call. */
static void no_answer(struct work *w, int why, const struct err *err)
{
    struct rpc_request r;
    client_end(w->client, false);
    w->client = NULL;
    rpc_request_parse(&r, w->text, NULL);
    bool again = why == ECONNRESET || (why == EPIPE && w->query);
    if (again && w->retries++ < RETRIES) {
        send_on(w, r.params, false);
    } else if (w->keeper) {
        struct buf text BUF_AUTO = BUF_INIT;
        route_ended(&text, w->call->id, err);
        stream_answer(w->call, span_of(&text), false);
    } else {
        fail(w, err);
    }
}

/* ---- what is followed ---- */

/* False: it is the last, which is the answer. */
static bool is_event(struct work *w, struct span answer)
{
    struct span event;
    if (!w->follows || !follow_goes_on(answer, &event, &w->cursor))
        return false;
    stream_event(w->call, event);
    client_end(w->client, true);
    w->client = NULL;
    return true;
}

/* The caller has it: on to the next. */
static void heard(void *arg, struct stream_call *call)
{
    struct work *w = call->work;
    struct rpc_request r;
    (void)arg;
    if (!w || !w->follows || w->client || w->cursor.len == 0)
        return;
    buf_truncate(&w->next, 0);
    follow_put_next(&w->next, call->text, &w->cursor);
    w->text = span_of(&w->next);
    w->retries = 0;
    rpc_request_parse(&r, w->text, NULL);
    send_on(w, r.params, !policy_rules_there());
}

static void on_answer(void *arg, struct span answer, const struct err *err)
{
    struct work *w = arg;
    int why = errno;
    my.turns = my.turns || answer.n > LONG;
    if (err)
        no_answer(w, why, err);
    else if (!is_event(w, answer))
        stream_answer(w->call, answer, true);
    go_on();
}

static void answer_here(void *arg, struct buf *response)
{
    stream_answer(arg, span_of(response), false);
}

static void on_child(void *arg, struct buf *answer)
{
    struct work *w = arg;
    struct err err;
    err_set(&err, ERR_INTERNAL, "the process that did the work ended without an answer");
    if (answer->len == 0 && w->call->id.s)
        fail(w, &err);
    else
        stream_answer(w->call, span_of(answer), false);
    go_on();
}

/* What takes long is done beside the other calls. False: it is to be done here. */
static bool begin_child(struct stream_call *call, const char *method)
{
    if (!stream_child_is_for(method))
        return false;
    struct work *w = mem_zalloc(sizeof *w);
    w->call = call;
    w->child = stream_child_start(my.loop, method, call->text, on_child, w);
    if (!w->child) {
        free(w);
        return false;
    }
    call->work = w;
    return true;
}

static void begin(void *arg, struct stream_call *call)
{
    struct rpc_request r;
    (void)arg;
    rpc_request_parse(&r, call->text, NULL);
    struct method m = tool_method(r.method);
    bool policy = policy_rules_there();
    if (m.kind == METHOD_IN_PROCESS && !policy && begin_child(call, r.method))
        return;
    if (m.kind == METHOD_UNKNOWN || (m.kind == METHOD_IN_PROCESS && !policy)) {
        rpc_take(call->text, tool_find_in_process, NULL, (struct rpc_sink){answer_here, call});
        return;
    }
    struct work *w = mem_zalloc(sizeof *w);
    *w = (struct work){.call = call,
                       .text = call->text,
                       .method = m,
                       .follows = call->id.s && follow_is(r.method),
                       .query = route_is_query(&m, r.method),
                       .next = BUF_INIT,
                       .cursor = BUF_INIT};
    call->work = w;
    send_on(w, r.params, !policy);
}

static void end(void *arg, struct stream_call *call, bool delivered)
{
    struct work *w = call->work;
    (void)arg;
    if (w && w->client && w->query && delivered && my.server < 0)
        my.server = client_leave(w->client);
    else if (w && w->client)
        client_end(w->client, delivered);
    if (w && w->child)
        stream_child_end(w->child);
    if (w)
        buf_release(&w->next);
    if (w)
        buf_release(&w->cursor);
    free(w);
}

/* ---- stdin and stdout ---- */

static void on_input(void *arg, int events);

static void on_step(void *arg)
{
    on_input(arg, LOOP_READ);
}

static bool can_be_waited_for(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode) || isatty(fd));
}

/* A file is read step by step, so that calls go on meanwhile. */
static void watch_input(void)
{
    my.steps = !can_be_waited_for(STDIN_FILENO);
    my.in = my.steps ? loop_timer(my.loop, STEP_MS, on_step, NULL)
                     : loop_fd(my.loop, STDIN_FILENO, LOOP_READ, on_input, NULL);
}

static void pause_all(bool paused)
{
    my.turns = false;
    for (struct stream_call *call = stream_calls(my.stream); call; call = call->next) {
        struct work *w = call->work;
        if (w && w->client)
            client_pause(w->client, paused);
    }
}

/* Answers, and what makes more of them, wait until there is room for them. */
static void stall(bool full)
{
    if (my.stalls != full) {
        loop_drop(&my.in);
        if (!full && !my.ended)
            watch_input();
    }
    if (my.stalls != full || (my.turns && !full))
        pause_all(full);
    my.stalls = full;
}

/* Sends what can be sent. */
static void flush(void)
{
    struct buf *out = stream_out(my.stream);
    while (my.sent < out->len) {
        ssize_t n = write(STDOUT_FILENO, out->data + my.sent, out->len - my.sent);
        if (n < 0 && errno == EAGAIN) {
            io_widen(STDOUT_FILENO, &my.wide);
            break;
        }
        if (n < 0 && errno != EINTR) {
            loop_stop(my.loop, applet_failed("exec", "cannot write: %s", err_text(errno)));
            break;
        }
        my.sent += n > 0 ? (size_t)n : 0;
    }
    if (my.sent == out->len) {
        buf_truncate(out, 0);
        my.sent = 0;
        if (!ends_are_open()) /* else it is filled again soon */
            buf_release(out);
    }
    ends_pause(out->len - my.sent >= ENDS_FULL); /* may say more */
    loop_fd_events(my.out, out->len > 0 ? LOOP_WRITE : 0);
}

/* After whatever may have made something to say. */
static void go_on(void)
{
    bool full = stream_is_full(my.stream);
    flush();
    while (full && !stream_is_full(my.stream)) {
        stream_go_on(my.stream);
        full = stream_is_full(my.stream);
        flush();
    }
    stall(full);
    if (my.ended && stream_open(my.stream) == 0 && stream_out(my.stream)->len == 0)
        loop_stop(my.loop, EXIT_OK);
}

static void on_grace(void *arg)
{
    (void)arg;
    loop_stop(my.loop, EXIT_OK);
}

static void on_input(void *arg, int events)
{
    static MEM_LARGE char data[READ_STEP];
    (void)arg, (void)events;
    ssize_t n = read(STDIN_FILENO, data, sizeof data);
    if (n > 0) {
        stream_feed(my.stream, data, (size_t)n);
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        my.ended = true;
        stream_feed(my.stream, "\n", 1); /* the last line may lack it */
        loop_timer(my.loop, GRACE_MS, on_grace, NULL);
    }
    if (my.ended)
        loop_drop(&my.in);
    else if (my.steps)
        loop_timer_set(my.in, STEP_MS);
    go_on();
}

static void on_output(void *arg, int events)
{
    (void)arg;
    if (events & LOOP_HANGUP)
        loop_stop(my.loop, applet_failed("exec", "nobody reads the answers any more"));
    else
        go_on();
}

static void on_tick(void *arg)
{
    (void)arg;
    if (!stream_tick(my.stream))
        loop_stop(my.loop, applet_failed("exec", "nothing was heard of the caller for too long"));
    loop_timer_set(my.tick, STREAM_TICK_MS);
    loop_timer_set(my.rest, REST_MS);
    go_on();
}

/* Behind a tick, when what the other side says at its own has been taken as well. */
static void on_rest(void *arg)
{
    (void)arg;
    if (stream_open(my.stream) == 0)
        mem_let_code_go();
}

/* ---- the whole ---- */

/* As many calls as there may be descriptors for. */
static size_t raise_limit(void)
{
    if (getrlimit(RLIMIT_NOFILE, &my.given) < 0)
        return OPEN_MAX / 2;
    my.raised = my.given;
    if (my.raised.rlim_cur < OPEN_MAX + OTHER_FDS)
        my.raised.rlim_cur =
            my.given.rlim_max < OPEN_MAX + OTHER_FDS ? my.given.rlim_max : OPEN_MAX + OTHER_FDS;
    setrlimit(RLIMIT_NOFILE, &my.raised);
    if (my.raised.rlim_cur >= OPEN_MAX + OTHER_FDS)
        return OPEN_MAX;
    return my.raised.rlim_cur > (rlim_t)2 * OTHER_FDS ? my.raised.rlim_cur - OTHER_FDS : OTHER_FDS / 2;
}

int exec_stream(void)
{
    struct stream_owner owner = {.begin = begin, .end = end, .heard = heard};
    struct err err;
    my.loop = loop_new(&err);
    if (!my.loop)
        return applet_failed("exec", "%s", err.msg);
    bool waits = can_be_waited_for(STDOUT_FILENO) && !isatty(STDOUT_FILENO);
    if (waits)
        io_set_nonblock(STDOUT_FILENO, true);
#ifdef TOOLBOX_GUEST /* which is small, and calls are what it is for */
    my.stream = stream_new(&owner, raise_limit());
#else
    owner.frame = ends_frame;
    my.stream = stream_new(&owner, raise_limit());
    ends_begin(my.loop, &my.given, stream_out(my.stream), go_on);
#endif
    my.out = loop_fd(my.loop, STDOUT_FILENO, LOOP_WRITE, on_output, NULL);
    my.tick = loop_timer(my.loop, STREAM_TICK_MS, on_tick, NULL);
    my.rest = loop_timer(my.loop, REST_MS, on_rest, NULL);
    watch_input();
    flush();
    int status = loop_run(my.loop);
    ends_finish();
    stream_free(my.stream);
    if (waits)
        io_set_nonblock(STDOUT_FILENO, false);
    loop_free(my.loop);
    return status;
}
