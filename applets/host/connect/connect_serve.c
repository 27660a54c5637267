#include "host/connect/connect_serve.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "applet.h"
#include "host/inject/connection.h"
#include "host/inject/transport.h"
#include "io.h"
#include "loop.h"
#include "mem.h"
#include "mux_relay.h"
#include "rpc.h"
#include "stream.h"
#include "stream_client.h"

#define READ_STEP 65536
#define CLIENTS_OPEN_MAX 1024      /* calls of one client */
#define CLIENT_OUT_MAX (64u << 20) /* that a client hasn't read; its answers are given back then */
#define REST_MS 1000               /* from a tick until what has been mapped for it is let go */
#define SAID_MAX 4096              /* of what the runtime says on stderr */

/* The runtime's program, with the stream to the target on its stdin and stdout. */
struct remote {
    struct stream_client *stream;
    struct mux_relay *relay; /* of byte streams */
    pid_t pid;
    int in, out, err;
    struct loop_source *in_source, *out_source, *err_source, *tick;
    size_t sent;
    struct buf said;
};

static struct {
    const struct connect_setup *setup;
    struct loop *loop;
    int listen_fd;
    struct remote remote;
    struct client_conn *conns;
    size_t n_conns, n_open;
    struct loop_source *idle, *rest;
    long long began;
    bool stalls; /* the target takes no more for now */
    bool greeted, ending;
    const char *why; /* it ends */
} my = {.listen_fd = -1, .remote = {.in = -1, .out = -1, .err = -1, .said = {.max = SAID_MAX}}};

/* One who shares it. */
struct client_conn {
    struct client_conn *next, **link;
    int fd;
    struct loop_source *source;
    struct stream *stream;
    size_t sent;
    bool ended; /* has said all */
    bool busy;  /* is on the stack */
    bool gone;
};

static void flush_remote(void);
static void conn_close(struct client_conn *c);

/* ---- the end ---- */

static void end_with(const char *why)
{
    if (my.ending)
        return;
    my.ending = true;
    my.why = why;
    if (!my.greeted) {
        struct err err;
        err_set(&err, ERR_TOOL, "%s%s%s", why, my.remote.said.len > 0 ? ": " : "", buf_str(&my.remote.said));
        io_write_all(my.setup->told, &err, sizeof err);
    }
    loop_stop(my.loop, my.greeted ? EXIT_OK : EXIT_FAILED);
}

static void on_idle(void *arg)
{
    (void)arg;
    if (my.n_conns == 0 && my.setup->persist_ms >= 0)
        end_with("nobody has used it");
}

static void wait_idle(void)
{
    bool ends = my.n_conns == 0 && my.setup->persist_ms >= 0;
    loop_timer_set(my.idle, ends ? my.setup->persist_ms + 1 : INT32_MAX);
}

/* ---- calls ---- */

static void answer_status(struct stream_call *call)
{
    struct buf result BUF_AUTO = BUF_INIT;
    struct buf response BUF_AUTO = BUF_INIT;
    char name[IPC_NAME_MAX];
    ipc_name(name, my.setup->name);
    char *socket MEM_AUTO = mem_printf("%s/%s", my.setup->path, name);
    buf_addc(&result, '{');
    json_member_string(&result, "target", my.setup->target);
    json_member_int(&result, "pid", getpid());
    json_member_seconds(&result, "age_s", now_ms() - my.began);
    json_member_int(&result, "clients", (long long)my.n_conns - 1); /* without the one who asks */
    json_member_int(&result, "open", (long long)my.n_open - 1);
    json_member_int_or_null(&result, "persist_s",
                            my.setup->persist_ms < 0 ? -1 : my.setup->persist_ms / 1000);
    json_member_string(&result, "socket", socket);
    buf_addc(&result, '}');
    rpc_put_result(&response, call->id, span_of(&result));
    stream_answer(call, span_of(&response), false);
}

/* Behind the acknowledgements themselves, which went before: its answer says that the target's side has them.
 */
static void confirm(struct stream_call *call)
{
    struct buf text BUF_AUTO = BUF_INIT;
    struct rpc_request r;
    rpc_put_request(&text, call->id, "rpc.alive", (struct span){0});
    rpc_request_parse(&r, span_of(&text), NULL);
    call->work = stream_client_send(my.remote.stream, span_of(&text), r.id, call);
}

static bool is_acknowledgement(const struct stream_call *call)
{
    struct rpc_request r;
    return rpc_request_parse(&r, call->text, NULL) == 0 && strcmp(r.method, "rpc.ack") == 0;
}

static void begin(void *arg, struct stream_call *call)
{
    struct rpc_request r;
    (void)arg;
    my.n_open++;
    rpc_request_parse(&r, call->text, NULL);
    if (strcmp(r.method, CONNECTION_STATUS) == 0) {
        answer_status(call);
    } else if (strcmp(r.method, CONNECTION_STOP) == 0) {
        struct buf response BUF_AUTO = BUF_INIT;
        rpc_put_result(&response, call->id, (struct span){"null", 4});
        stream_answer(call, span_of(&response), false);
        end_with("it was stopped");
    } else if (is_acknowledgement(call)) {
        confirm(call);
    } else {
        call->work = stream_client_send(my.remote.stream, call->text, call->id, call);
        if (!call->work)
            stream_answer(call, (struct span){"", 0}, false); /* a notification */
    }
}

static void end(void *arg, struct stream_call *call, bool delivered)
{
    (void)arg;
    my.n_open--;
    if (call->work)
        stream_client_settle(call->work, delivered);
}

static void on_heard(void *arg, struct stream_call *call)
{
    (void)arg;
    if (call->work)
        stream_client_heard(call->work);
}

/* ---- byte streams ---- */

static struct buf *out_of_client(void *client)
{
    struct client_conn *c = client;
    return stream_out(c->stream);
}

static void on_client_frame(void *arg, const struct mux_frame *f)
{
    mux_relay_from_client(my.remote.relay, arg, f);
}

static void on_remote_frame(void *arg, const struct mux_frame *f)
{
    (void)arg;
    mux_relay_from_far(my.remote.relay, f);
}

/* What was sent is gone; where more of it comes soon the memory stays. */
static void empty(struct buf *out)
{
    if (mux_relay_is_used(my.remote.relay))
        buf_truncate(out, 0);
    else
        buf_release(out);
}

/* ---- clients ---- */

/* Sends what can be sent. False: it is gone. */
static bool flush_conn(struct client_conn *c)
{
    struct buf *out = stream_out(c->stream);
    while (c->sent < out->len) {
        ssize_t n = send(c->fd, out->data + c->sent, out->len - c->sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno != EAGAIN && errno != EINTR)
            return false;
        if (n < 0 && errno == EAGAIN)
            break;
        c->sent += n > 0 ? (size_t)n : 0;
    }
    if (c->sent == out->len) {
        empty(out);
        c->sent = 0;
    }
    return out->len - c->sent <= CLIENT_OUT_MAX;
}

static void conn_wait(struct client_conn *c)
{
    bool full = stream_is_full(c->stream) || my.stalls;
    loop_fd_events(c->source,
                   (c->ended || full ? 0 : LOOP_READ) | (stream_out(c->stream)->len > 0 ? LOOP_WRITE : 0));
}

/* After whatever may have made something to say to it; may free it. */
static void conn_go_on(struct client_conn *c)
{
    bool full = stream_is_full(c->stream), there = flush_conn(c);
    while (there && full && !stream_is_full(c->stream)) {
        stream_go_on(c->stream);
        full = stream_is_full(c->stream);
        there = flush_conn(c);
    }
    if (!there || (c->ended && stream_open(c->stream) == 0 && stream_out(c->stream)->len == 0))
        conn_close(c);
    else
        conn_wait(c);
}

static void conn_free(struct client_conn *c)
{
    mux_relay_forget(my.remote.relay, c);
    stream_free(c->stream);
    close(c->fd);
    free(c);
    flush_remote();
}

static void conn_close(struct client_conn *c)
{
    *c->link = c->next;
    if (c->next)
        c->next->link = c->link;
    loop_drop(&c->source);
    c->gone = true;
    my.n_conns--;
    wait_idle();
    if (!c->busy)
        conn_free(c);
}

static void on_conn(void *arg, int events)
{
    static char data[READ_STEP];
    struct client_conn *c = arg;
    ssize_t n = events & LOOP_READ ? recv(c->fd, data, sizeof data, MSG_DONTWAIT) : -1;
    c->busy = true;
    if (n > 0)
        stream_feed(c->stream, data, (size_t)n);
    else if (n == 0)
        c->ended = true;
    if (n <= 0 && (events & LOOP_HANGUP))
        conn_close(c);
    else
        conn_go_on(c);
    c->busy = false;
    if (c->gone)
        conn_free(c);
    else
        flush_remote();
}

static void on_connect(void *arg, int events)
{
    struct stream_owner owner = {
        .begin = begin, .end = end, .heard = on_heard, .frame = on_client_frame, .confirms = true};
    pid_t pid;
    uid_t uid;
    (void)arg, (void)events;
    int fd = accept4(my.listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return;
    if (ipc_peer(fd, &pid, &uid) < 0 || (uid != 0 && uid != geteuid())) {
        close(fd);
        return;
    }
    struct client_conn *c = mem_zalloc(sizeof *c);
    c->fd = fd;
    c->link = &my.conns;
    c->next = my.conns;
    if (c->next)
        c->next->link = &c->next;
    my.conns = c;
    my.n_conns++;
    wait_idle();
    owner.arg = c;
    c->stream = stream_new(&owner, CLIENTS_OPEN_MAX);
    c->source = loop_fd(my.loop, fd, LOOP_READ, on_conn, c);
    conn_go_on(c);
}

/* ---- the target's side ---- */

/* What a client sends waits while the target takes nothing. */
static void stall(bool stalls)
{
    if (my.stalls == stalls)
        return;
    my.stalls = stalls;
    for (struct client_conn *c = my.conns; c; c = c->next)
        conn_wait(c);
}

static void flush_remote(void)
{
    struct remote *r = &my.remote;
    struct buf *out = stream_client_out(r->stream);
    while (r->sent < out->len && r->in >= 0) {
        ssize_t n = write(r->in, out->data + r->sent, out->len - r->sent);
        if (n < 0 && errno != EAGAIN && errno != EINTR) {
            end_with("the target's side takes nothing more");
            return;
        }
        if (n < 0 && errno == EAGAIN)
            break;
        r->sent += n > 0 ? (size_t)n : 0;
    }
    if (r->sent == out->len) {
        empty(out);
        r->sent = 0;
    }
    loop_fd_events(r->in_source, out->len > 0 ? LOOP_WRITE : 0);
    stall(out->len - r->sent >= STREAM_OUT_FULL);
}

static void on_writable(void *arg, int events)
{
    (void)arg;
    if (events & LOOP_HANGUP)
        end_with("the target's side has ended");
    else
        flush_remote();
}

/* Only now is there something to connect to. */
static void on_hello(void *arg, struct span params)
{
    static struct err err; /* what it says is told at the end */
    (void)arg, (void)params;
    my.listen_fd = ipc_listen(my.setup->dirfd, my.setup->name, &err);
    if (my.listen_fd < 0) {
        end_with(err.msg);
        return;
    }
    loop_fd(my.loop, my.listen_fd, LOOP_READ, on_connect, NULL);
    my.greeted = true;
    io_write_all(my.setup->told, "", 1);
    close(my.setup->told);
}

static void on_answer(void *arg, void *work, struct span response)
{
    (void)arg;
    stream_answer(work, response, !is_acknowledgement(work));
}

static void on_event(void *arg, void *work, struct span event)
{
    (void)arg;
    stream_event(work, event);
}

static void on_readable(void *arg, int events)
{
    static char data[READ_STEP];
    (void)arg, (void)events;
    ssize_t n = read(my.remote.out, data, sizeof data);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        end_with("the target's side has ended");
        return;
    }
    if (stream_client_feed(my.remote.stream, data, (size_t)n) < 0) {
        end_with("what the target's side says makes no sense");
        return;
    }
    for (struct client_conn *c = my.conns, *next; c; c = next) {
        next = c->next;
        if (stream_out(c->stream)->len > c->sent)
            conn_go_on(c);
    }
    flush_remote();
}

static void on_stderr(void *arg, int events)
{
    char data[512];
    (void)arg, (void)events;
    ssize_t n = read(my.remote.err, data, sizeof data);
    if (n > 0 && my.remote.said.len + (size_t)n < SAID_MAX)
        transport_show(&my.remote.said, data, (size_t)n, sizeof data);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        loop_drop(&my.remote.err_source);
}

static void on_tick(void *arg)
{
    (void)arg;
    if (!stream_client_tick(my.remote.stream))
        end_with(my.greeted ? "nothing was heard of the target for too long"
                            : "the target's side says nothing");
    loop_timer_set(my.remote.tick, STREAM_TICK_MS);
    loop_timer_set(my.rest, REST_MS);
    for (struct client_conn *c = my.conns, *next; c; c = next) {
        next = c->next;
        if (stream_tick(c->stream))
            conn_go_on(c);
        else
            conn_close(c);
    }
    flush_remote();
}

/* Behind a tick, when what the other side says at its own has been taken as well. */
static void on_rest(void *arg)
{
    (void)arg;
    if (my.n_open == 0)
        mem_let_code_go();
}

static void on_signal(void *arg, int number)
{
    (void)arg, (void)number;
    end_with("it was ended by a signal");
}

/* ---- the whole ---- */

static int start_remote(struct err *err)
{
    static const struct stream_client_owner owner = {
        .hello = on_hello, .answer = on_answer, .event = on_event, .frame = on_remote_frame};
    struct remote *r = &my.remote;
    int fds[3], here FD_AUTO = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    r->pid = transport_start(here, my.setup->command, fds, err);
    if (r->pid < 0)
        return -1;
    r->in = fds[0];
    r->out = fds[1];
    r->err = fds[2];
    r->stream = stream_client_new(&owner);
    r->relay = mux_relay_new(stream_client_out(r->stream), out_of_client);
    r->in_source = loop_fd(my.loop, r->in, 0, on_writable, NULL);
    r->out_source = loop_fd(my.loop, r->out, LOOP_READ, on_readable, NULL);
    r->err_source = loop_fd(my.loop, r->err, LOOP_READ, on_stderr, NULL);
    r->tick = loop_timer(my.loop, STREAM_TICK_MS, on_tick, NULL);
    return 0;
}

/* Tells every client why, and which of its calls were open. */
static void say_goodbye(struct client_conn *c)
{
    struct buf *out = stream_out(c->stream);
    const char *comma = "";
    buf_adds(out, "{\"jsonrpc\":\"2.0\",\"method\":\"rpc.ended\",\"params\":{\"reason\":");
    json_puts(out, my.why);
    buf_adds(out, ",\"open\":[");
    for (struct stream_call *call = stream_calls(c->stream); call; call = call->next) {
        if (call->answered || !call->id.s)
            continue;
        buf_addf(out, "%s%.*s", comma, (int)call->id.n, call->id.s);
        comma = ",";
    }
    buf_adds(out, "]}}\n");
    flush_conn(c);
}

int connect_serve(const struct connect_setup *setup)
{
    struct err err;
    my.setup = setup;
    my.began = now_ms();
    my.loop = loop_new(&err);
    if (!my.loop || start_remote(&err) < 0) {
        io_write_all(setup->told, &err, sizeof err);
        return EXIT_FAILED;
    }
    my.idle = loop_timer(my.loop, INT32_MAX, on_idle, NULL);
    my.rest = loop_timer(my.loop, REST_MS, on_rest, NULL);
    wait_idle();
    loop_on_signal(my.loop, on_signal, NULL);
    int status = loop_run(my.loop);
    if (my.listen_fd >= 0)
        ipc_unlink(setup->dirfd, setup->name);
    connection_unlock(setup->dirfd, setup->name);
    io_close(&my.listen_fd);
    for (struct client_conn *c = my.conns; c; c = c->next) {
        say_goodbye(c);
        close(c->fd);
    }
    transport_end_stream(my.remote.pid, &my.remote.in);
    return status;
}
