#include "serve_named.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <unistd.h>

#include "applet.h"
#include "commands/exec/route.h"
#include "io.h"
#include "ipc.h"
#include "mem.h"
#include "proc.h"
#include "self.h"
#include "sha256.h"
#include "surroundings.h"

#define HELD "TOOLBOX_MCP_SESSION" /* variable: socket of the session to serve */
#define JOIN_MS 10000
#define TRY_MS 10
#define AGAIN_MS 1000
#define PATIENCE_MS 10000 /* for calls that are open when a client's input ends */
#define SOON_MS 1
#define REAP_MS 1000

static const char NAME[] = "mcp serve";
static char held[IPC_NAME_MAX];

/* ---- descriptors ---- */

#define HANDED 2

union control {
    struct cmsghdr head;
    char room[CMSG_SPACE(HANDED * sizeof(int))];
};

static bool hand_over(int conn, const int fds[HANDED])
{
    char byte = '+';
    union control c = {.room = {0}};
    struct iovec text = {&byte, 1};
    struct msghdr m = {
        .msg_iov = &text, .msg_iovlen = 1, .msg_control = c.room, .msg_controllen = sizeof c.room};
    c.head.cmsg_level = SOL_SOCKET;
    c.head.cmsg_type = SCM_RIGHTS;
    c.head.cmsg_len = CMSG_LEN(HANDED * sizeof *fds);
    memcpy(CMSG_DATA(&c.head), fds, HANDED * sizeof *fds);
    return sendmsg(conn, &m, MSG_NOSIGNAL) == 1;
}

static bool take_over(int conn, int fds[HANDED])
{
    char byte;
    union control c = {.room = {0}};
    struct iovec text = {&byte, 1};
    struct msghdr m = {
        .msg_iov = &text, .msg_iovlen = 1, .msg_control = c.room, .msg_controllen = sizeof c.room};
    if (recvmsg(conn, &m, MSG_CMSG_CLOEXEC) != 1 || m.msg_controllen < CMSG_LEN(HANDED * sizeof *fds) ||
        c.head.cmsg_type != SCM_RIGHTS || c.head.cmsg_len != CMSG_LEN(HANDED * sizeof *fds))
        return false;
    memcpy(fds, CMSG_DATA(&c.head), HANDED * sizeof *fds);
    return true;
}

/* ---- joining ---- */

/* One session for each name and set of options, so that none gets more tools than its own client offers. */
static void owner_of(const char *name, int argc, char **argv, char owner[IPC_NAME_MAX])
{
    char hex[SHA256_HEX_SIZE];
    struct buf text BUF_AUTO = BUF_INIT;
    buf_add(&text, name, strlen(name) + 1);
    for (int i = 1; i < argc; i++)
        buf_add(&text, argv[i], strlen(argv[i]) + 1);
    sha256_hex(text.data, text.len, hex);
    snprintf(owner, IPC_NAME_MAX, IPC_TRANSIENT "mcp-%.16s", hex);
}

/* As a job, so that it ends with the server, and whatever process 1 is like, somebody waits for it. */
static int begin_session(const struct place *place, const char *owner, int argc, char **argv, struct err *err)
{
    struct buf params BUF_AUTO = BUF_INIT;
    struct buf result BUF_AUTO = BUF_INIT;
    char *self MEM_AUTO = self_path();
    if (!self)
        return err_set(err, ERR_TOOL, "nobody knows where this program is");
    buf_adds(&params, "{\"argv\":[");
    json_puts(&params, self);
    buf_adds(&params, ",\"mcp\",\"serve\"");
    for (int i = 1; i < argc; i++) {
        buf_addc(&params, ',');
        json_puts(&params, argv[i]);
    }
    buf_adds(&params, "],\"env\":{\"" HELD "\":");
    json_puts(&params, owner);
    json_member_string(&params, "TOOLBOX_DIR", place->path);
    buf_addc(&params, '}');
    surroundings_put(&params);
    buf_addc(&params, '}');
    return call_method("exec_remote_start", span_of(&params), &result, err);
}

/* Once it is taken, until it is over. False: nobody has taken it. */
static bool serve_through(int conn, int *status)
{
    char said;
    ssize_t n;
    if (!hand_over(conn, (int[HANDED]){STDIN_FILENO, STDOUT_FILENO}) || read(conn, &said, 1) != 1)
        return false;
    do
        n = read(conn, &said, 1);
    while (n < 0 && errno == EINTR);
    *status = n == 1 ? EXIT_OK : applet_failed(NAME, "the process that served the session has ended");
    return true;
}

int serve_named_join(const char *name, int argc, char **argv)
{
    struct place place PLACE_AUTO = PLACE_INIT;
    struct err err;
    char owner[IPC_NAME_MAX];
    int status;
    owner_of(name, argc, argv, owner);
    if (place_open(&place, &err) < 0)
        return applet_failed(NAME, "%s", err.msg);
    long long now = now_ms(), end = now + JOIN_MS, again = now;
    for (; now < end; usleep(TRY_MS * 1000), now = now_ms()) {
        int conn FD_AUTO = ipc_connect(place.fd, owner, IPC_WAIT_S);
        if (conn >= 0 && serve_through(conn, &status))
            return status;
        if (now < again)
            continue;
        if (begin_session(&place, owner, argc, argv, &err) < 0)
            return applet_failed(NAME, "%s", err.msg);
        again = now_ms() + AGAIN_MS; /* the one before it may just be ending */
    }
    return applet_failed(NAME, "the session %s could not be begun in %d seconds", name, JOIN_MS / 1000);
}

/* ---- serving ---- */

struct door {
    struct serve all; /* whose shells, jobs and calls all have */
    struct joined *joined;
    struct place place;
    int fd;
    struct loop_source *source, *sweep, *idle;
    long long idle_ms;
};

/* A connection. */
struct joined {
    struct joined *next;
    struct door *door;
    int conn, fds[HANDED];
    bool taken; /* its descriptors */
    struct loop_source *source;
    struct serve pipe; /* lines from it, and to it */
};

static bool has_calls(const struct joined *j)
{
    const struct call *c = j->door->all.calls.first;
    while (c && c->origin.client != &j->pipe.client)
        c = c->next;
    return c != NULL;
}

/* Nobody waits for its answers any more. */
static void give_up(struct joined *j)
{
    loop_drop(&j->pipe.in.source);
    loop_drop(&j->pipe.in.timer);
    j->pipe.in.ended = j->pipe.out.ended = true;
    for (struct call *c = j->door->all.calls.first, *next; c; c = next) {
        next = c->next;
        if (c->origin.client == &j->pipe.client && c->tool)
            serve_cancel(c);
        else if (c->origin.client == &j->pipe.client && !c->task)
            serve_call_end(c);
    }
    loop_timer_set(j->door->sweep, SOON_MS);
}

static void out_of_patience(void *arg)
{
    give_up(arg);
}

static void be_patient(struct serve *pipe)
{
    struct joined *j = (struct joined *)(void *)((char *)pipe - offsetof(struct joined, pipe));
    if (!pipe->end.patience)
        pipe->end.patience = loop_timer(pipe->loop, PATIENCE_MS, out_of_patience, j);
    loop_timer_set(j->door->sweep, SOON_MS);
}

static void advanced(struct serve *pipe)
{
    if (pipe->in.ended)
        be_patient(pipe);
}

static void deaf(struct serve *pipe)
{
    give_up((struct joined *)(void *)((char *)pipe - offsetof(struct joined, pipe)));
}

static void take_line(struct serve *pipe, struct span line)
{
    struct joined *j = (struct joined *)(void *)((char *)pipe - offsetof(struct joined, pipe));
    serve_message(&j->door->all, &pipe->client, (struct sse *)(void *)j, line);
}

static const struct serve_owner pipe_owner = {
    .line = take_line, .stalled = be_patient, .deaf = deaf, .advanced = advanced};

/* To the stream that a message came by: here that is a connection. */
static void said(struct sse *stream, struct span message, bool last)
{
    struct joined *j = (struct joined *)(void *)stream;
    serve_send(&j->pipe, NULL, message, last);
}

static void all_advanced(struct serve *s)
{
    struct door *d = (struct door *)(void *)s;
    serve_advanced(s);
    loop_timer_set(d->sweep, SOON_MS);
}

static void all_over(struct serve *s, int status)
{
    loop_stop(s->loop, status);
}

static const struct serve_owner owner = {.advanced = all_advanced, .over = all_over, .said = said};

static void leave(struct joined *j)
{
    struct joined **at = &j->door->joined;
    while (*at != j)
        at = &(*at)->next;
    *at = j->next;
    loop_drop(&j->pipe.in.source);
    loop_drop(&j->pipe.in.timer);
    loop_drop(&j->pipe.out.source);
    loop_drop(&j->source);
    serve_release(&j->pipe);
    buf_release(&j->pipe.in.line);
    fifo_release(&j->pipe.out.waiting);
    (void)!write(j->conn, ".", 1);
    io_close(&j->fds[0]);
    io_close(&j->fds[1]);
    io_close(&j->conn);
    free(j);
}

static void on_idle(void *arg)
{
    struct door *d = arg;
    loop_drop(&d->idle);
    loop_drop(&d->source);
    ipc_unlink(d->place.fd, held);
    io_close(&d->fd);
    serve_finish(&d->all);
}

static void sweep(void *arg)
{
    struct door *d = arg;
    for (struct joined *j = d->joined, *next; j; j = next) {
        const struct serve *p = &j->pipe;
        next = j->next;
        if (p->in.ended && (p->out.ended || p->out.waiting.len == 0) && !has_calls(j))
            leave(j);
    }
    if (!d->joined && !d->idle && !d->all.end.begun)
        d->idle = loop_timer(d->all.loop, d->idle_ms, on_idle, d);
}

static void on_conn(void *arg, int events)
{
    struct joined *j = arg;
    char byte;
    (void)events;
    if (!j->taken && take_over(j->conn, j->fds)) {
        j->taken = true;
        j->pipe.in.fd = j->fds[0];
        j->pipe.out.fd = j->fds[1];
        if (write(j->conn, "+", 1) == 1)
            serve_io_start(&j->pipe);
    } else if (!j->taken || read(j->conn, &byte, 1) == 0 || errno != EAGAIN) {
        loop_drop(&j->source);
        give_up(j);
    }
}

static void on_door(void *arg, int events)
{
    struct door *d = arg;
    int conn = accept4(d->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    (void)events;
    if (conn < 0)
        return;
    struct joined *j = mem_zalloc(sizeof *j);
    *j = (struct joined){.next = d->joined, .door = d, .conn = conn, .fds = {-1, -1}};
    j->pipe = (struct serve){.owner = &pipe_owner, .offer = d->all.offer, .loop = d->all.loop};
    serve_begin(&j->pipe);
    j->source = loop_fd(d->all.loop, conn, LOOP_READ, on_conn, j);
    d->joined = j;
    loop_drop(&d->idle);
}

static void on_signal(void *arg, int signal)
{
    struct door *d = arg;
    (void)signal;
    if (!d->all.end.begun)
        on_idle(d);
}

/* Whether no other process serves this session, for as long as this one lives: two clients may have begun it
 * at once. */
static bool is_alone(int dirfd)
{
    char name[1 + IPC_NAME_MAX];
    if (ipc_hidden_name(name, held) < 0)
        return false;
    memcpy(name + 1, "lock", 4); /* in the place of IPC_TRANSIENT: it is no socket */
    int fd = openat(dirfd, name, O_RDWR | O_CREAT | O_CLOEXEC, 0600); /* is never closed */
    return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;
}

bool serve_named_is_held(void)
{
    const char *name = getenv(HELD);
    snprintf(held, sizeof held, "%s", name ? name : "");
    unsetenv(HELD); /* shells and jobs begin with what this process has */
    return *held;
}

int serve_named_hold(const struct serve_offer *offer, long long idle_ms)
{
    struct err err;
    struct door d = {.all = {.owner = &owner, .offer = offer}, .place = PLACE_INIT, .idle_ms = idle_ms};
    if (place_open(&d.place, &err) < 0)
        return applet_failed(NAME, "%s", err.msg);
    if (!is_alone(d.place.fd))
        return EXIT_OK;
    d.all.loop = loop_new(&err);
    if (!d.all.loop || (d.fd = ipc_listen(d.place.fd, held, &err)) < 0)
        return applet_failed(NAME, "%s", err.msg);
    serve_begin(&d.all);
    loop_on_signal(d.all.loop, on_signal, &d);
    d.source = loop_fd(d.all.loop, d.fd, LOOP_READ, on_door, &d);
    d.sweep = loop_timer(d.all.loop, SOON_MS, sweep, &d);
    int status = loop_run(d.all.loop);
    while (d.joined)
        leave(d.joined);
    serve_release(&d.all);
    proc_reap(REAP_MS);
    return status;
}
