#include "serve_tls.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "applet.h"
#include "io.h"
#include "mem.h"

#define SHAKE_MS 10000 /* for a client to begin, and then to be through with it */
#define REST_MS 60000  /* for the rest of the last answer */
#define HASTE_MS 1000  /* before one that is at it makes room for another */
#define SHAKING_MAX 1024
#define RETRY_MS 100
#define PIECE 16384
#define FDS 3 /* of a connection */

static const char NAME[] = "mcp serve";

struct tls_link {
    struct tls_link *next, **link;
    struct tls_door *door;
    struct tls_peer *peer; /* NULL: nothing has come yet */
    struct {
        int fd; /* inner -1: hands are being shaken, or the answer's side has closed */
        bool ended;
        struct loop_source *source;
    } net, inner;
    bool shaken;
    int wants; /* what the last step of TLS waits for: LOOP_… */
    long long since_ms;
    struct loop_source *timer;
    struct buf in, out; /* on their way inside; to the client */
};

struct tls_door {
    struct loop *loop;
    int fd;
    struct tls_server *server;
    struct proxy_server *http;
    struct loop_source *listener, *retry;
    struct tls_link *links; /* the newest first */
    size_t shaking;
};

/* ---- the end of one ---- */

static void link_free(struct tls_link *l)
{
    if (!l->shaken)
        l->door->shaking--;
    *l->link = l->next;
    if (l->next)
        l->next->link = l->link;
    if (l->peer && l->shaken)
        tls_peer_close(l->peer);
    tls_peer_free(l->peer);
    loop_drop(&l->net.source);
    loop_drop(&l->inner.source);
    loop_drop(&l->timer);
    io_close(&l->net.fd);
    io_close(&l->inner.fd);
    buf_release(&l->in);
    buf_release(&l->out);
    free(l);
}

static void too_slow(void *arg)
{
    link_free(arg);
}

/* ---- bytes ---- */

/* Steps give: something was moved, nothing could be, it is over. */
enum { OVER = -1, STILL, MOVED };

/* What a step of TLS gave; n > 0 is the caller's. */
static int took(struct tls_link *l, ssize_t n)
{
    if (n == TLS_WANT_READ)
        l->wants |= LOOP_READ;
    else if (n == TLS_WANT_WRITE)
        l->wants |= LOOP_WRITE;
    else if (n < 0)
        return OVER;
    return STILL;
}

static int from_client(struct tls_link *l)
{
    static MEM_LARGE char bytes[PIECE];
    if (l->net.ended || l->in.len > 0)
        return STILL;
    ssize_t n = tls_peer_read(l->peer, bytes, sizeof bytes);
    if (n == 0) {
        l->net.ended = true;
        shutdown(l->inner.fd, SHUT_WR);
        return MOVED;
    }
    if (n < 0)
        return took(l, n);
    buf_add(&l->in, bytes, (size_t)n);
    return MOVED;
}

static int to_inside(struct tls_link *l)
{
    if (l->in.len == 0)
        return STILL;
    ssize_t n = send(l->inner.fd, l->in.data, l->in.len, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n <= 0)
        return errno == EAGAIN || errno == EINTR ? STILL : OVER;
    buf_consume(&l->in, (size_t)n);
    return MOVED;
}

static int from_inside(struct tls_link *l)
{
    static MEM_LARGE char bytes[PIECE];
    if (l->inner.ended || l->out.len > 0)
        return STILL;
    ssize_t n = recv(l->inner.fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? STILL : OVER;
    l->inner.ended = n == 0;
    buf_add(&l->out, bytes, (size_t)n);
    return MOVED;
}

static int to_client(struct tls_link *l)
{
    if (l->out.len == 0)
        return l->inner.ended ? OVER : STILL;
    ssize_t n = tls_peer_write(l->peer, l->out.data, l->out.len);
    if (n <= 0)
        return took(l, n);
    buf_consume(&l->out, (size_t)n);
    return MOVED;
}

/* Moves what can be moved. False: it is over, and gone. */
static bool pump(struct tls_link *l)
{
    static int (*const steps[])(struct tls_link *) = {from_client, to_inside, from_inside, to_client};
    bool moved = true;
    while (moved) {
        moved = false;
        l->wants = 0;
        for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
            int result = steps[i](l);
            if (result == OVER) {
                link_free(l);
                return false;
            }
            moved = moved || result == MOVED;
        }
    }
    loop_fd_events(l->net.source, l->wants);
    if (l->inner.source)
        loop_fd_events(l->inner.source, (l->out.len == 0 ? LOOP_READ : 0) | (l->in.len > 0 ? LOOP_WRITE : 0));
    return true;
}

static void on_inner(void *arg, int events)
{
    struct tls_link *l = arg;
    if (!pump(l) || !(events & LOOP_HANGUP))
        return;
    /* The rest is on its way to a client that is slow: from here on it alone is waited for. */
    loop_drop(&l->inner.source);
    l->timer = loop_timer(l->door->loop, REST_MS, too_slow, l);
}

/* ---- hands ---- */

static bool let_in(struct tls_link *l)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
        return false;
    l->inner.fd = pair[0];
    l->inner.source = loop_fd(l->door->loop, l->inner.fd, LOOP_READ, on_inner, l);
    proxy_server_take(l->door->http, pair[1]);
    l->shaken = true;
    l->door->shaking--;
    loop_drop(&l->timer);
    return true;
}

static void shake(struct tls_link *l)
{
    if (!l->peer)
        l->peer = tls_peer_new(l->door->server, l->net.fd);
    l->wants = 0;
    int status = l->peer ? tls_peer_shake(l->peer) : -1;
    if (status == 0 && let_in(l))
        pump(l);
    else if (status == 0 || took(l, status) == OVER)
        link_free(l);
    else
        loop_fd_events(l->net.source, l->wants);
}

static void on_net(void *arg, int events)
{
    struct tls_link *l = arg;
    if (events & LOOP_HANGUP)
        link_free(l);
    else if (l->shaken)
        pump(l);
    else
        shake(l);
}

/* ---- connections ---- */

static void accept_again(void *arg)
{
    struct tls_door *d = arg;
    loop_drop(&d->retry);
    loop_fd_events(d->listener, LOOP_READ);
}

static void wait_for_room(struct tls_door *d)
{
    loop_fd_events(d->listener, 0);
    if (!d->retry)
        d->retry = loop_timer(d->loop, RETRY_MS, accept_again, d);
}

/* The one that has been shaking hands longest goes, if that is long. */
static bool drop_slowest(struct tls_door *d)
{
    struct tls_link *oldest = NULL;
    for (struct tls_link *l = d->links; l; l = l->next)
        /* What was freed is in the list no more. NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
        if (!l->shaken && now_ms() - l->since_ms > HASTE_MS)
            oldest = l;
    if (oldest)
        link_free(oldest);
    return oldest != NULL;
}

static bool has_room(struct tls_door *d)
{
    if (d->shaking >= SHAKING_MAX && !drop_slowest(d))
        return false;
    return proxy_server_has_room(d->http, d->fd, FDS) || drop_slowest(d);
}

static void on_listener(void *arg, int events)
{
    struct tls_door *d = arg;
    struct err err;
    int on = 1;
    (void)events;
    if (tls_server_refresh(d->server, &err) < 0)
        applet_failed(NAME, "%s: it goes on with what there was before", err.msg);
    if (!has_room(d)) {
        wait_for_room(d);
        return;
    }
    int fd = accept4(d->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
        if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
            wait_for_room(d);
        return;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    struct tls_link *l = mem_zalloc(sizeof *l);
    *l = (struct tls_link){
        .door = d, .net.fd = fd, .inner.fd = -1, .since_ms = now_ms(), .next = d->links, .link = &d->links};
    l->in = l->out = (struct buf)BUF_INIT;
    if (l->next) /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): as above */
        l->next->link = &l->next;
    d->links = l;
    d->shaking++;
    l->net.source = loop_fd(d->loop, fd, LOOP_READ, on_net, l);
    l->timer = loop_timer(d->loop, SHAKE_MS, too_slow, l);
}

struct tls_door *tls_door_new(struct loop *loop, int listen_fd, struct tls_server *server,
                              struct proxy_server *http)
{
    struct tls_door *d = mem_zalloc(sizeof *d);
    *d = (struct tls_door){.loop = loop, .fd = listen_fd, .server = server, .http = http};
    d->listener = loop_fd(loop, listen_fd, LOOP_READ, on_listener, d);
    return d;
}

void tls_door_free(struct tls_door *d)
{
    if (!d)
        return;
    while (d->links) /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): as above */
        link_free(d->links);
    loop_drop(&d->listener);
    loop_drop(&d->retry);
    io_close(&d->fd);
    free(d);
}
