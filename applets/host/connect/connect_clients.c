#include "host/connect/connect_clients.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "mem.h"

#define READ_STEP 65536
#define OPEN_MAX 1024 /* calls of one client */
#define CLIENT_OUT_MAX                                                                                       \
    (64u << 20) /* that a client hasn't read beside its longest answer; all are given back then */

struct client_conn {
    struct client_conn *next, **link;
    int fd;
    struct loop_source *source;
    struct stream *stream;
    size_t sent;
    size_t left, longest; /* unread bytes when something was sent last; the most that have come at once since
                             all were read */
    bool ended;           /* has said all */
    bool busy;            /* is on the stack */
    bool gone;
};

static struct {
    struct loop *loop;
    struct connect_clients_owner owner;
    struct client_conn *first;
    size_t n;
    bool stalls;
} my;

static void conn_close(struct client_conn *c);

/* Sends what can be sent. False: it is gone. */
static bool flush_conn(struct client_conn *c)
{
    struct buf *out = stream_out(c->stream);
    size_t fresh = out->len - c->sent - c->left;
    if (fresh > c->longest)
        c->longest = fresh;
    while (c->sent < out->len) {
        ssize_t n = send(c->fd, out->data + c->sent, out->len - c->sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno != EAGAIN && errno != EINTR)
            return false;
        if (n < 0 && errno == EAGAIN)
            break;
        c->sent += n > 0 ? (size_t)n : 0;
    }
    if (c->sent == out->len) {
        buf_truncate(out, 0);
        if (out->cap > STREAM_IN_KEPT)
            buf_release(out);
        c->sent = c->longest = 0;
    }
    c->left = out->len - c->sent;
    return c->left <= CLIENT_OUT_MAX + c->longest;
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
    my.owner.gone(c);
    stream_free(c->stream);
    close(c->fd);
    free(c);
    my.owner.went_on();
}

static void conn_close(struct client_conn *c)
{
    *c->link = c->next;
    if (c->next)
        c->next->link = c->link;
    loop_drop(&c->source);
    c->gone = true;
    my.n--;
    my.owner.counted();
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
    /* While it is busy it is not freed. NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
    c->busy = false;
    if (c->gone)
        conn_free(c);
    else
        my.owner.went_on();
}

/* ---- all of them ---- */

void connect_clients_begin(struct loop *loop, const struct connect_clients_owner *owner)
{
    my.loop = loop;
    my.owner = *owner;
}

void connect_clients_take(int fd)
{
    struct stream_owner owner = my.owner.stream;
    struct client_conn *c = mem_zalloc(sizeof *c);
    c->fd = fd;
    c->link = &my.first;
    c->next = my.first;
    if (c->next)
        c->next->link = &c->next;
    my.first = c;
    my.n++;
    my.owner.counted();
    owner.arg = c;
    c->stream = stream_new(&owner, OPEN_MAX);
    c->source = loop_fd(my.loop, fd, LOOP_READ, on_conn, c);
    conn_go_on(c);
}

size_t connect_clients_count(void)
{
    return my.n;
}

struct buf *connect_clients_out(void *client)
{
    struct client_conn *c = client;
    return stream_out(c->stream);
}

void connect_clients_flush(void)
{
    for (struct client_conn *c = my.first, *next; c; c = next) {
        next = c->next;
        if (stream_out(c->stream)->len > c->sent)
            conn_go_on(c);
    }
}

void connect_clients_stall(bool stalls)
{
    if (my.stalls == stalls)
        return;
    my.stalls = stalls;
    for (struct client_conn *c = my.first; c; c = c->next)
        conn_wait(c);
}

void connect_clients_tick(void)
{
    for (struct client_conn *c = my.first, *next; c; c = next) {
        struct buf *out = stream_out(c->stream);
        next = c->next;
        if (out->len == 0)
            buf_release(out);
        if (stream_tick(c->stream))
            conn_go_on(c);
        else
            conn_close(c);
    }
}

/* Tells a client why, and which of its calls were open. */
static void say_goodbye(struct client_conn *c, const char *why)
{
    struct buf *out = stream_out(c->stream);
    const char *comma = "";
    buf_adds(out, "{\"jsonrpc\":\"2.0\",\"method\":\"rpc.ended\",\"params\":{\"reason\":");
    json_puts(out, why);
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

void connect_clients_end(const char *why)
{
    while (my.first) {
        say_goodbye(my.first, why);
        conn_close(my.first);
    }
}
