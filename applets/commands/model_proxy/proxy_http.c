#include "proxy_http.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "hex.h"
#include "http_frame.h"
#include "io.h"
#include "mem.h"

#define AHEAD 65536 /* of a stream, made and not sent yet */
#define CHUNK 16384
#define ACCEPT_RETRY_MS 100
#define SLOW_MS 60000  /* for a request, from its first byte on; of its body for each piece */
#define SILENT_MS 1000 /* before a connection makes room for another one */
#define SPARE_FDS 8    /* that connections leave free, for the files of the service */

enum state {
    READING,   /* a request is being read, or none has begun */
    WAITING,   /* it was handed on */
    STREAMING, /* some of the answer is out or on its way, the rest is to come */
    SENDING,   /* all of it is known */
    LEAVING,   /* nothing more is answered; what comes is thrown away until the client closes */
};

struct proxy_conn {
    struct http_frame frame;
    struct proxy_server *server;
    enum state state;
    long long since_ms; /* it has been there, or its last answer is out */
    bool chunked;       /* the stream is */

    struct buf out;
    size_t sent;
    struct events plan;
    void (*gone)(void *arg);
    void *gone_arg;
    void (*sent_all)(void *arg);
    void *sent_arg;
    proxy_tap_fn tap;
    void *tap_arg;
};

struct proxy_server {
    struct loop *loop;
    int fd;
    struct loop_source *listener, *retry;
    proxy_handler_fn handler;
    void *arg;
    struct http_frame *conns; /* each the frame of a struct proxy_conn */
};

/* ---- who is told ---- */

void proxy_on_sent(struct proxy_conn *c, void (*sent)(void *arg), void *arg)
{
    c->sent_all = sent;
    c->sent_arg = arg;
}

size_t proxy_unsent(const struct proxy_conn *c)
{
    return c->out.len - c->sent;
}

void proxy_tap(struct proxy_conn *c, proxy_tap_fn tap, void *arg)
{
    c->tap = tap;
    c->tap_arg = arg;
}

static void show(struct proxy_conn *c, int status, const char *fields, struct span text)
{
    if (c->tap)
        c->tap(c->tap_arg, status, fields, text);
    if (!text.s && !fields)
        c->tap = NULL;
}

/* ---- the end ---- */

void proxy_on_gone(struct proxy_conn *c, void (*gone)(void *arg), void *arg)
{
    c->gone = gone;
    c->gone_arg = arg;
}

static void finish(struct proxy_conn *c)
{
    if (!http_frame_close(&c->frame))
        return;
    buf_release(&c->out);
    events_release(&c->plan);
    void (*gone)(void *arg) = c->gone;
    c->gone = NULL;
    if (gone)
        gone(c->gone_arg);
    show(c, 0, NULL, (struct span){0});
}

static void on_linger(void *arg)
{
    struct proxy_conn *c = arg;
    finish(c);
    free(c);
}

/* Has the loop wait for what the connection can go on with. */
static void await(struct proxy_conn *c)
{
    /* what was sent ahead is taken up from the loop: a socket that can be written to wakes us */
    bool ahead = c->state == READING && c->frame.input.len > 0;
    loop_fd_events(c->frame.source, LOOP_READ | (ahead || c->sent < c->out.len ? LOOP_WRITE : 0));
}

/* ---- sending ---- */

static void begin_next(struct proxy_conn *c)
{
    c->gone = c->sent_all = NULL;
    events_release(&c->plan);
    buf_release(&c->out);
    c->sent = 0;
    if (c->frame.last) {
        shutdown(c->frame.fd, SHUT_WR);
        c->state = LEAVING;
        if (!c->frame.timer)
            c->frame.timer = loop_timer(c->server->loop, HTTP_LINGER_MS, on_linger, c);
        await(c);
        return;
    }
    http_parser_release(&c->frame.parser);
    http_parser_init_any(&c->frame.parser);
    c->state = READING;
    c->since_ms = now_ms();
    await(c);
}

static void put_chunk(struct proxy_conn *c, struct span text)
{
    if (text.n == 0) /* that would be the last one */
        return;
    if (c->chunked)
        buf_addf(&c->out, "%zx\r\n", text.n);
    buf_add(&c->out, text.s, text.n);
    if (c->chunked)
        buf_adds(&c->out, "\r\n");
}

static void all_known(struct proxy_conn *c)
{
    if (c->chunked)
        buf_adds(&c->out, "0\r\n\r\n");
    show(c, 200, NULL, (struct span){0});
}

/* Makes some more of the stream. False when there is no more. */
static bool make_more(struct proxy_conn *c)
{
    struct buf chunk BUF_AUTO = BUF_INIT;
    if (!events_next(&c->plan, &chunk, CHUNK))
        return false;
    put_chunk(c, span_of(&chunk));
    show(c, 200, NULL, span_of(&chunk));
    if (c->plan.at_part == c->plan.n && c->plan.at_text == c->plan.text.len)
        all_known(c);
    return true;
}

/* Sends what the socket takes. -1: the client is gone. */
static int flush(struct proxy_conn *c)
{
    for (;;) {
        if (c->sent > AHEAD) {
            buf_consume(&c->out, c->sent);
            c->sent = 0;
        }
        while (c->state == SENDING && c->out.len - c->sent < AHEAD && make_more(c))
            ;
        if (c->sent == c->out.len)
            break;
        ssize_t n =
            send(c->frame.fd, c->out.data + c->sent, c->out.len - c->sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (http_frame_lost(n))
            return -1;
        if (n < 0)
            break;
        c->sent += (size_t)n;
    }
    if (c->state == SENDING && c->sent == c->out.len)
        begin_next(c);
    else
        await(c);
    if (c->state == STREAMING && c->sent == c->out.len && c->sent_all)
        c->sent_all(c->sent_arg);
    return 0;
}

/* From a handler, which may be on the stack: a failure is dealt with from the loop, which reports it again.
 */
static void send_on(struct proxy_conn *c)
{
    if (flush(c) < 0)
        await(c);
}

static void begin_head(struct proxy_conn *c, int status)
{
    c->frame.last = c->frame.last || !c->frame.parser.keep_alive;
    buf_release(&c->frame.parser.body);
    buf_addf(&c->out, "HTTP/1.1 %d %s\r\nServer: toolbox\r\n%s", status, http_reason(status),
             c->frame.last ? "Connection: close\r\n" : "");
}

void proxy_answer(struct proxy_conn *c, int status, const char *fields, struct span body)
{
    begin_head(c, status);
    buf_adds(&c->out, fields);
    show(c, status, fields, body);
    show(c, status, NULL, (struct span){0});
    if (status != 204)
        buf_addf(&c->out, "Content-Length: %zu\r\n", body.n);
    buf_adds(&c->out, "\r\n");
    if (strcmp(c->frame.parser.method, "HEAD") != 0)
        buf_add(&c->out, body.s, body.n);
    c->state = SENDING;
    send_on(c);
}

void proxy_stream(struct proxy_conn *c, const char *fields)
{
    c->chunked = !c->frame.parser.reading.http10;
    if (!c->chunked)
        c->frame.parser.keep_alive = false;
    begin_head(c, 200);
    buf_addf(&c->out, "%sCache-Control: no-cache\r\n%s\r\n", fields,
             c->chunked ? "Transfer-Encoding: chunked\r\n" : "");
    show(c, 200, fields, (struct span){0});
    c->state = STREAMING;
}

void proxy_stream_text(struct proxy_conn *c, struct span text)
{
    show(c, 200, NULL, text);
    proxy_stream_alive(c, text);
}

void proxy_stream_alive(struct proxy_conn *c, struct span text)
{
    put_chunk(c, text);
    send_on(c);
}

void proxy_stream_end(struct proxy_conn *c, struct events *plan)
{
    events_release(&c->plan);
    c->plan = *plan;
    events_init(plan);
    if (c->plan.n == 0 && c->plan.text.len == 0)
        all_known(c);
    c->state = SENDING;
    send_on(c);
}

/* ---- requests ---- */

static void refuse(struct proxy_conn *c)
{
    struct buf text BUF_AUTO = BUF_INIT;
    const char *why = http_reason(c->frame.parser.status);
    buf_adds(&text, "{\"error\":{");
    json_member_string(&text, "message", why);
    json_member_string(&text, "type", "invalid_request_error");
    buf_adds(&text, "}}");
    c->frame.parser.keep_alive = false;
    proxy_answer(c, c->frame.parser.status, "Content-Type: application/json\r\n", span_of(&text));
}

/* Percent-decodes in place; a NUL is left as it was written. */
static void decode(char *s)
{
    char *to = s;
    for (; *s; s++) {
        int high = *s == '%' ? hex_digit(s[1]) : -1, low = high >= 0 ? hex_digit(s[2]) : -1;
        if (low >= 0 && (high | low) != 0) {
            *to++ = (char)(high << 4 | low);
            s += 2;
        } else {
            *to++ = *s;
        }
    }
    *to = '\0';
}

static void hand_on(struct proxy_conn *c)
{
    char *path = mem_strdup(buf_str(&c->frame.parser.target)), *query = strchr(path, '?');
    if (query)
        *query++ = '\0';
    decode(path);
    struct proxy_request request = {c->frame.parser.method, path, query ? query : "",
                                    span_of(&c->frame.parser.body), &c->frame.parser};
    c->state = WAITING;
    loop_drop(&c->frame.timer);
    c->server->handler(c->server->arg, c, &request);
    free(path);
}

/* A request that has begun is to come to its end. */
static void hurry(struct proxy_conn *c)
{
    const struct http_parser *p = &c->frame.parser;
    if (p->state == HTTP_REQUEST_LINE && p->reading.line.len == 0)
        return;
    if (!c->frame.timer)
        c->frame.timer = loop_timer(c->server->loop, SLOW_MS, on_linger, c);
    else if (p->state == HTTP_BODY)
        loop_timer_set(c->frame.timer, SLOW_MS);
}

/* Takes up a request, and what is behind it once that has been answered. */
static void take_in(struct proxy_conn *c, const char *data, size_t n)
{
    size_t taken = 0;
    while (taken < n && c->state == READING && !c->frame.closed) {
        taken += http_frame_parse(&c->frame, data + taken, n - taken);
        if (c->frame.parser.state == HTTP_COMPLETE)
            hand_on(c);
        else if (c->frame.parser.state == HTTP_REFUSED)
            refuse(c);
    }
    if (!c->frame.closed && c->state != LEAVING)
        buf_add(&c->frame.input, data + taken, n - taken);
    if (!c->frame.closed && c->state == READING)
        hurry(c);
}

static void take_up(struct proxy_conn *c)
{
    struct buf input = c->frame.input;
    buf_init(&c->frame.input, BUF_NO_MAX);
    take_in(c, input.data, input.len);
    buf_release(&input);
    if (!c->frame.closed)
        await(c);
}

/* Keeps what a client sends ahead. Of one that sends too much no further request is answered, but it is read
 * on: left in the socket it would hide that the client goes. */
static void keep_ahead(struct proxy_conn *c, const char *data, size_t n)
{
    if (c->frame.input.len + n > HTTP_AHEAD_MAX) {
        buf_release(&c->frame.input);
        c->frame.last = true;
    }
    if (!c->frame.last)
        buf_add(&c->frame.input, data, n);
}

static void read_more(struct proxy_conn *c)
{
    const char *data;
    ssize_t n = http_frame_read(&c->frame, &data);
    if (n == 0 || n == -1)
        finish(c);
    else if (n > 0 && c->state == READING && c->frame.input.len == 0)
        take_in(c, data, (size_t)n);
    else if (n > 0 && c->state == READING)
        buf_add(&c->frame.input, data, (size_t)n); /* the loop has the rest of it for us */
    else if (n > 0 && c->state != LEAVING)
        keep_ahead(c, data, (size_t)n);
    if (!c->frame.closed)
        await(c);
}

static void on_event(void *arg, int events)
{
    struct proxy_conn *c = arg;
    if (events & LOOP_HANGUP)
        finish(c);
    if (!c->frame.closed && (events & LOOP_READ))
        read_more(c);
    if (!c->frame.closed && (events & LOOP_WRITE) && c->state == READING && c->frame.input.len > 0)
        take_up(c);
    else if (!c->frame.closed && (events & LOOP_WRITE) && c->state != LEAVING && c->state != READING &&
             flush(c) < 0)
        finish(c);
    if (c->frame.closed)
        free(c);
}

/* ---- connections ---- */

static void accept_again(void *arg)
{
    struct proxy_server *s = arg;
    loop_drop(&s->retry);
    loop_fd_events(s->listener, LOOP_READ);
}

void proxy_server_take(struct proxy_server *s, int fd)
{
    struct proxy_conn *c = mem_zalloc(sizeof *c);
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on); /* what is said in pieces is to go at once */
    c->server = s;
    c->since_ms = now_ms();
    http_parser_init_any(&c->frame.parser);
    buf_init(&c->out, BUF_NO_MAX);
    events_init(&c->plan);
    http_frame_open(&c->frame, &s->conns, s->loop, fd, on_event, c);
    c->frame.timer = loop_timer(s->loop, SLOW_MS, on_linger, c);
}

/* Whether a connection leaves enough descriptors: without a file no request is answered, and a call that
 * can't be written ends the proxy. */
static bool has_room(int any_fd, int n)
{
    struct rlimit limit;
    int lowest FD_AUTO = fcntl(any_fd, F_DUPFD_CLOEXEC, 0);
    return lowest >= 0 && getrlimit(RLIMIT_NOFILE, &limit) == 0 &&
           (rlim_t)(lowest + n) + SPARE_FDS <= limit.rlim_cur;
}

/* The one that has been there longest without asking for anything goes, if that is long. */
static bool make_room(struct proxy_server *s)
{
    struct proxy_conn *oldest = NULL;
    for (struct http_frame *f = s->conns; f; f = f->next)
        if (((struct proxy_conn *)f)->state == READING &&
            now_ms() - ((struct proxy_conn *)f)->since_ms > SILENT_MS)
            oldest = (struct proxy_conn *)f;
    if (oldest)
        on_linger(oldest);
    return oldest != NULL;
}

bool proxy_server_has_room(struct proxy_server *s, int any_fd, int n)
{
    return has_room(any_fd, n) || make_room(s);
}

static void wait_for_room(struct proxy_server *s)
{
    /* it stays in the queue, so the listener would wake us for ever */
    loop_fd_events(s->listener, 0);
    s->retry = loop_timer(s->loop, ACCEPT_RETRY_MS, accept_again, s);
}

static void on_listener(void *arg, int events)
{
    struct proxy_server *s = arg;
    (void)events;
    if (!proxy_server_has_room(s, s->fd, 1)) {
        wait_for_room(s);
        return;
    }
    int fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0)
        proxy_server_take(s, fd);
    else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
        wait_for_room(s);
}

struct proxy_server *proxy_server_new(struct loop *loop, int listen_fd, proxy_handler_fn handler, void *arg)
{
    struct proxy_server *s = mem_zalloc(sizeof *s);
    *s = (struct proxy_server){.loop = loop, .fd = listen_fd, .handler = handler, .arg = arg};
    if (listen_fd >= 0)
        s->listener = loop_fd(loop, listen_fd, LOOP_READ, on_listener, s);
    return s;
}

void proxy_server_free(struct proxy_server *s)
{
    loop_drop(&s->listener);
    loop_drop(&s->retry);
    io_close(&s->fd);
    while (s->conns) {
        struct proxy_conn *c = (struct proxy_conn *)s->conns;
        /* One that has ended is in the list no more. NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
        finish(c);
        free(c);
    }
    free(s);
}
