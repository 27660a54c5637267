#include "http_server.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http_conn.h"
#include "io.h"
#include "ipc.h"
#include "log.h"
#include "mem.h"

#define ACCEPT_STEP 32      /* connections taken in one go: those that are open get their turn as well */
#define ACCEPT_RETRY_MS 100 /* when there was no descriptor for another one */

struct http_server {
    struct http_host host;
    int listen_fd;
    struct loop_source *listener;
    struct loop_source *retry; /* set: nothing is accepted for the moment */
    struct loop_source *drain;
    long long drain_until;
    void (*drained)(void *arg);
    void *drained_arg;
};

static void take_connection(struct http_server *s, int fd)
{
    pid_t pid = 0;
    uid_t uid = (uid_t)-1;
    s->host.counts.connections++;
    if (ipc_peer(fd, &pid, &uid) == 0 && (uid == 0 || uid == geteuid())) {
        http_conn_new(&s->host, fd);
        return;
    }
    s->host.counts.strangers++;
    log_line(LOG_WARNING, "turned away process %ld of user %ld", (long)pid, (long)(int)uid);
    close(fd);
}

static void accept_again(void *arg)
{
    struct http_server *s = arg;
    loop_drop(&s->retry);
    if (s->listener)
        loop_fd_events(s->listener, LOOP_READ);
}

/* The connection stays in the queue, so the listener would wake us for ever. */
static void pause_accepting(struct http_server *s)
{
    log_line(LOG_WARNING, "no more connections can be taken for now: %s", err_text(errno));
    loop_fd_events(s->listener, 0);
    s->retry = loop_timer(s->host.loop, ACCEPT_RETRY_MS, accept_again, s);
}

static void on_listener(void *arg, int events)
{
    struct http_server *s = arg;
    (void)events;
    for (int i = 0; i < ACCEPT_STEP; i++) {
        int fd = accept4(s->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0)
            take_connection(s, fd);
        else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
            pause_accepting(s);
        if (fd < 0 && errno != ECONNABORTED && errno != EINTR)
            return;
    }
}

static bool writing(const struct http_server *s)
{
    for (struct http_conn *c = http_conn_first(&s->host); c; c = http_conn_next(c))
        if (http_conn_writing(c))
            return true;
    return false;
}

static void on_change(void *arg)
{
    struct http_server *s = arg;
    if (s->retry)
        loop_timer_set(s->retry, 0);
    if (s->drain && !writing(s))
        loop_timer_set(s->drain, 0);
}

static void on_drained(void *arg)
{
    struct http_server *s = arg;
    long long left = s->drain_until - now_ms();
    if (writing(s) && left > 0) { /* a client that was connected before has asked something more */
        loop_timer_set(s->drain, left);
        return;
    }
    loop_drop(&s->drain);
    s->drained(s->drained_arg);
}

static void stop_listening(struct http_server *s)
{
    loop_drop(&s->retry);
    loop_drop(&s->listener);
    io_close(&s->listen_fd);
}

struct http_server *http_server_new(struct loop *loop, int listen_fd, rpc_find_fn find, void *find_ctx)
{
    struct http_server *s = mem_zalloc(sizeof *s);
    s->host =
        (struct http_host){.loop = loop, .find = find, .find_ctx = find_ctx, .changed = on_change, .arg = s};
    s->listen_fd = listen_fd;
    io_set_nonblock(listen_fd, true);
    s->listener = loop_fd(loop, listen_fd, LOOP_READ, on_listener, s);
    return s;
}

void http_server_free(struct http_server *s)
{
    stop_listening(s);
    loop_drop(&s->drain);
    while (s->host.conns)
        http_conn_close(http_conn_first(&s->host));
    free(s);
}

void http_server_drain(struct http_server *s, int limit_ms, void (*done)(void *arg), void *arg)
{
    stop_listening(s);
    loop_drop(&s->drain);
    s->drained = done;
    s->drained_arg = arg;
    s->drain_until = now_ms() + limit_ms;
    s->drain = loop_timer(s->host.loop, writing(s) ? limit_ms : 0, on_drained, s);
}

bool http_server_busy(const struct http_server *s)
{
    for (struct http_conn *c = http_conn_first(&s->host); c; c = http_conn_next(c))
        if (http_conn_busy(c))
            return true;
    return false;
}

size_t http_server_pending(const struct http_server *s)
{
    size_t n = 0;
    for (struct http_conn *c = http_conn_first(&s->host); c; c = http_conn_next(c))
        n += http_conn_calling(c);
    return n;
}

struct http_counts http_server_counts(const struct http_server *s)
{
    struct http_counts counts = s->host.counts;
    for (struct http_conn *c = http_conn_first(&s->host); c; c = http_conn_next(c))
        counts.open++;
    return counts;
}
