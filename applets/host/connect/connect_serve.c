#include "host/connect/connect_serve.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "applet.h"
#include "host/connect/connect_clients.h"
#include "host/connect/connect_remote.h"
#include "host/connect/connect_watch.h"
#include "host/inject/connection.h"
#include "io.h"
#include "loop.h"
#include "mem.h"
#include "mux_relay.h"
#include "rpc.h"
#include "stream.h"

#define REST_MS 1000 /* from a tick until what has been mapped for it is let go */
#define AGAIN_MS 100 /* until a stream that broke is tried again; then twice as long each time */
#define AGAIN_MOST_MS 10000
#define GIVE_UP_MS 600000
#define PERSIST_MOST_S 86400

static struct {
    const struct connect_setup *setup;
    struct loop *loop;
    int listen_fd, lock;
    struct loop_source *listening, *idle, *rest, *tick, *again;
    struct connect_remote *remote; /* NULL: none for now */
    struct mux_relay *relay;       /* of its byte streams */
    struct connect_watch *watch;   /* of the container's name */
    size_t n_open;
    long long began, lost; /* lost: when the stream broke that is tried again; 0: none is */
    int wait_ms;           /* before the next try */
    int persist_ms;        /* as setup's at first */
    bool up, ending;       /* up: the target's side has said hello */
    char *instance;        /* what it said it is */
    const char *why;       /* it ends, or has broken */
} my = {.listen_fd = -1};

static void flush_remote(void)
{
    if (my.remote)
        connect_remote_flush(my.remote);
}

/* ---- the end ---- */

static void end_with(const char *why)
{
    if (my.ending)
        return;
    my.ending = true;
    my.why = why;
    if (!my.instance) { /* it never was there */
        struct err err;
        const char *said = my.remote ? connect_remote_said(my.remote) : "";
        err_set(&err, ERR_TOOL, "%s%s%s", why, *said ? ": " : "", said);
        io_write_all(my.setup->told, &err, sizeof err);
    }
    loop_stop(my.loop, my.instance ? EXIT_OK : EXIT_FAILED);
}

/* The stream has broken, or couldn't be had again. What has to do with it goes when nobody is in the middle
 * of something. */
static void broken(const char *why)
{
    if (!my.instance || my.persist_ms >= 0) { /* nobody has asked for it to be kept, come what may */
        end_with(why);
        return;
    }
    my.why = why;
    loop_timer_set(my.again, 1);
}

static void on_idle(void *arg)
{
    (void)arg;
    if (connect_clients_count() == 0 && my.persist_ms >= 0)
        end_with("nobody has used it");
}

static void wait_idle(void)
{
    bool ends = connect_clients_count() == 0 && my.persist_ms >= 0;
    loop_timer_set(my.idle, ends ? my.persist_ms + 1 : INT32_MAX);
}

/* ---- calls ---- */

/* Those who only want to be carried don't find it while there is nothing to carry them. */
static const char *name_when(bool up)
{
    static char broken_name[IPC_NAME_MAX + 8];
    snprintf(broken_name, sizeof broken_name, "broken-%s", my.setup->name);
    return up ? my.setup->name : broken_name;
}

/* Of several wishes the longest counts. */
static void take_wish(struct span params)
{
    struct span wish;
    if (params.n == 0 || json_kind(params) != JSON_OBJECT || !json_member(params, "persist_s", &wish, NULL) ||
        json_kind(wish) != JSON_NUMBER)
        return;
    double s = strtod(wish.s, NULL);
    int ms = s < 0 ? -1 : (int)((s < PERSIST_MOST_S ? s : PERSIST_MOST_S) * 1000);
    if (my.persist_ms >= 0 && (ms < 0 || ms > my.persist_ms))
        my.persist_ms = ms;
}

static void answer_status(struct stream_call *call)
{
    struct buf result BUF_AUTO = BUF_INIT;
    struct buf response BUF_AUTO = BUF_INIT;
    char name[IPC_NAME_MAX];
    ipc_name(name, name_when(my.up));
    char *socket MEM_AUTO = mem_printf("%s/%s", my.setup->path, name);
    buf_addc(&result, '{');
    json_member_string(&result, "target", my.setup->target);
    json_member_string(&result, "state", my.up ? "connected" : "reconnecting");
    json_member_int(&result, "pid", getpid());
    json_member_seconds(&result, "age_s", now_ms() - my.began);
    json_member_int(&result, "clients",
                    (long long)connect_clients_count() - 1); /* without the one who asks */
    json_member_int(&result, "open", (long long)my.n_open - 1);
    json_member_int_or_null(&result, "persist_s", my.persist_ms < 0 ? -1 : my.persist_ms / 1000);
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
    call->work = stream_client_send(connect_remote_stream(my.remote), span_of(&text), r.id, call);
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
        take_wish(r.params);
        answer_status(call);
    } else if (strcmp(r.method, CONNECTION_STOP) == 0) {
        struct buf response BUF_AUTO = BUF_INIT;
        rpc_put_result(&response, call->id, (struct span){"null", 4});
        stream_answer(call, span_of(&response), false);
        end_with("it was stopped");
    } else if (!my.up) {
        struct buf response BUF_AUTO = BUF_INIT;
        struct err err;
        err_set(&err, ERR_TOOL, "the connection has broken and is being made again: %s", my.why);
        rpc_put_error(&response, call->id, &err);
        stream_answer(call, span_of(&response), false);
    } else if (is_acknowledgement(call)) {
        confirm(call);
    } else {
        call->work = stream_client_send(connect_remote_stream(my.remote), call->text, call->id, call);
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

static void on_client_frame(void *arg, const struct mux_frame *f)
{
    if (my.up)
        mux_relay_from_client(my.relay, arg, f);
    else
        mux_frame_put(connect_clients_out(arg), MUX_RESET, f->stream, my.why, strlen(my.why));
}

static void on_remote_frame(void *arg, const struct mux_frame *f)
{
    (void)arg;
    mux_relay_from_far(my.relay, f);
}

/* ---- the target's side ---- */

static void on_connect(void *arg, int events)
{
    pid_t pid;
    uid_t uid;
    (void)arg, (void)events;
    int fd = accept4(my.listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0 && ipc_peer(fd, &pid, &uid) == 0 && (uid == 0 || uid == geteuid()))
        connect_clients_take(fd);
    else if (fd >= 0)
        close(fd);
}

/* Under the name that it has now. Who has come to the one before, and heard nothing, looks again. */
static int listen_again(struct err *err)
{
    int before = my.listen_fd;
    my.listen_fd = ipc_listen(my.setup->dirfd, name_when(my.up), err);
    if (before >= 0) {
        ipc_unlink(my.setup->dirfd, name_when(!my.up));
        loop_drop(&my.listening);
        close(before);
    }
    if (my.listen_fd >= 0)
        my.listening = loop_fd(my.loop, my.listen_fd, LOOP_READ, on_connect, NULL);
    return my.listen_fd < 0 ? -1 : 0;
}

/* Only now is there something to connect to. */
static void on_hello(void *arg, struct span params)
{
    static struct err err; /* what it says is told at the end */
    struct span instance;
    (void)arg;
    if (!json_member(params, "instance", &instance, NULL))
        instance = (struct span){"", 0};
    if (my.instance && !span_is(instance, my.instance)) {
        end_with("the target was restarted or replaced");
        return;
    }
    my.up = true;
    my.lost = 0;
    if (listen_again(&err) < 0) {
        end_with(err.msg);
    } else if (!my.instance) {
        my.instance = mem_dup(instance.s, instance.n);
        io_write_all(my.setup->told, "", 1);
        close(my.setup->told);
    }
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

static void on_tick(void *arg)
{
    (void)arg;
    if (my.remote)
        connect_remote_tick(my.remote);
    loop_timer_set(my.tick, STREAM_TICK_MS);
    loop_timer_set(my.rest, REST_MS);
    connect_clients_tick();
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

/* ---- the end of one stream, and the next ---- */

static void on_name(bool lost)
{
    if (lost)
        broken("the engine has ended");
    else
        end_with("the name leads to another container, or to none");
}

static int start_remote(struct err *err)
{
    static const struct connect_remote_owner owner = {
        .stream = {.hello = on_hello, .answer = on_answer, .event = on_event, .frame = on_remote_frame},
        .heard = connect_clients_flush,
        .stalls = connect_clients_stall,
        .ended = broken};
    long long since = wall_ms();
    my.remote = connect_remote_start(my.loop, my.setup->command, &owner, err);
    if (!my.remote)
        return -1;
    if (my.setup->container)
        my.watch = connect_watch_begin(my.loop, my.setup->container, since, on_name);
    my.relay = mux_relay_new(stream_client_out(connect_remote_stream(my.remote)), connect_clients_out);
    return 0;
}

/* What was open is told to those who wait for it, and given back. */
static void end_remote(void)
{
    if (my.up)
        connect_clients_end(my.why);
    connect_watch_end(&my.watch);
    if (!my.remote)
        return;
    mux_relay_free(my.relay);
    connect_remote_free(my.remote);
    my.relay = NULL;
    my.remote = NULL;
    connect_clients_stall(false);
}

/* From here on others may make one. */
static int become_broken(struct err *err)
{
    my.up = false;
    my.lost = now_ms();
    my.wait_ms = AGAIN_MS;
    int result = listen_again(err);
    connection_unlock(my.setup->dirfd, my.setup->name);
    io_close(&my.lock);
    return result;
}

/* The next try, where nobody else has made a connection meanwhile. */
static void try_again(void)
{
    static struct err err;
    my.lock = connection_lock(my.setup->dirfd, my.setup->name, 0, &err);
    if (my.lock < 0)
        end_with("there is another connection to the target by now");
    else if (start_remote(&err) < 0)
        end_with(err.msg);
}

static void forget(void *client)
{
    if (my.relay)
        mux_relay_forget(my.relay, client);
}

static void on_again(void *arg)
{
    static struct err err;
    bool was_up = my.up, tried = my.remote != NULL;
    (void)arg;
    end_remote();
    if (was_up && become_broken(&err) < 0) {
        end_with(err.msg);
    } else if (now_ms() - my.lost > GIVE_UP_MS) {
        end_with("it can't be made again");
    } else if (tried) {
        if (!was_up) {
            connection_unlock(my.setup->dirfd, my.setup->name);
            io_close(&my.lock);
        }
        loop_timer_set(my.again, my.wait_ms);
        my.wait_ms = my.wait_ms * 2 < AGAIN_MOST_MS ? my.wait_ms * 2 : AGAIN_MOST_MS;
    } else {
        try_again();
    }
}

/* ---- the whole ---- */

int connect_serve(const struct connect_setup *setup)
{
    static const struct connect_clients_owner clients = {
        .stream = {.begin = begin, .end = end, .heard = on_heard, .frame = on_client_frame, .confirms = true},
        .gone = forget,
        .counted = wait_idle,
        .went_on = flush_remote};
    struct err err;
    int status = EXIT_FAILED;
    my.setup = setup;
    my.persist_ms = setup->persist_ms;
    my.lock = setup->lock;
    my.began = now_ms();
    my.loop = loop_new(&err);
    if (!my.loop || start_remote(&err) < 0) {
        io_write_all(setup->told, &err, sizeof err);
    } else {
        connect_clients_begin(my.loop, &clients);
        my.again = loop_timer(my.loop, INT32_MAX, on_again, NULL);
        my.tick = loop_timer(my.loop, STREAM_TICK_MS, on_tick, NULL);
        my.idle = loop_timer(my.loop, INT32_MAX, on_idle, NULL);
        my.rest = loop_timer(my.loop, REST_MS, on_rest, NULL);
        wait_idle();
        loop_on_signal(my.loop, on_signal, NULL);
        status = loop_run(my.loop);
    }
    if (my.listen_fd >= 0)
        ipc_unlink(setup->dirfd, name_when(my.up));
    if (my.lock >= 0)
        connection_unlock(setup->dirfd, setup->name);
    io_close(&my.listen_fd);
    end_remote();
    return status;
}
