#include "http_conn.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "io.h"
#include "ipc.h"
#include "mem.h"

#define LOOK_MS 2 /* until it is looked first whether an answer was read; then twice as long each time */
#define LOOK_MAX_MS 10000

enum state {
    READING, /* a request is being read, or none has begun */
    CALLING, /* it was handed on; the answer is to come */
    WRITING, /* the answer is being sent */
    LEAVING, /* nothing more is answered; what still comes is thrown away until the client closes */
};

struct http_conn {
    struct http_frame frame; /* its timer: of a refusal, or to look whether an answer was read */
    struct http_host *host;
    int events; /* what the loop waits for */
    int look_ms;
    enum state state;
    bool entered;                /* its event is being dealt with: not to be freed now */
    bool ended;                  /* the client has said all (it has closed that half), and reads on */
    struct rpc_message *message; /* open, or answered and not known to have arrived */

    char head[256]; /* of the answer */
    size_t head_len;
    struct buf body;
    size_t sent; /* of head and body together */
};

struct http_conn *http_conn_first(const struct http_host *host)
{
    return (struct http_conn *)host->conns;
}

struct http_conn *http_conn_next(const struct http_conn *c)
{
    return (struct http_conn *)c->frame.next;
}

bool http_conn_calling(const struct http_conn *c)
{
    return c->state == CALLING;
}

bool http_conn_busy(const struct http_conn *c)
{
    return c->state == CALLING || c->state == WRITING || c->message || c->frame.input.len > 0 ||
           c->frame.parser.state != HTTP_REQUEST_LINE || c->frame.parser.reading.line.len > 0;
}

bool http_conn_writing(const struct http_conn *c)
{
    return c->state == WRITING;
}

static void wait_for(struct http_conn *c, int events)
{
    if (events != c->events && !c->frame.closed)
        loop_fd_events(c->frame.source, events);
    c->events = events;
}

/* ---- the end ---- */

/* Settles what is to be said about the message that the connection has: at most once. */
static void settle(struct http_conn *c, bool delivered)
{
    struct rpc_message *m = c->message;
    c->message = NULL;
    if (!m)
        return;
    loop_drop(&c->frame.timer);
    if (c->state == CALLING)
        rpc_message_abandon(m);
    else
        rpc_message_delivered(m, delivered);
}

/* Everything but the memory, which whoever is at work with the connection needs until he is done. */
static void finish(struct http_conn *c, bool delivered)
{
    if (!http_frame_close(&c->frame))
        return;
    buf_release(&c->body);
    c->host->changed(c->host->arg);
    settle(c, delivered);
}

void http_conn_close(struct http_conn *c)
{
    finish(c, false);
    if (!c->entered)
        free(c);
}

static void on_linger(void *arg)
{
    struct http_conn *c = arg;
    c->frame.timer = NULL;
    http_conn_close(c);
}

/* ---- answers ---- */

static bool has_read_all(const struct http_conn *c)
{
    int unread = 0;
    return ioctl(c->frame.fd, SIOCOUTQ, &unread) == 0 && unread == 0;
}

/* A client may keep the connection and say nothing more: when it has read its answer to the last byte, it has
 * it. A client that never reads isn't looked at for ever. */
static void look_at_delivery(void *arg)
{
    struct http_conn *c = arg;
    if (has_read_all(c)) {
        c->entered = true;
        settle(c, true);
        if (c->ended && c->state == LEAVING)
            finish(c, true);
        c->entered = false;
        if (c->frame.closed)
            free(c);
    } else if ((c->look_ms *= 2) < LOOK_MAX_MS) {
        loop_timer_set(c->frame.timer, c->look_ms);
    }
}

/* The answer is complete: on to the next request, or to the end. */
static void written(struct http_conn *c)
{
    buf_release(&c->body);
    if (c->frame.last) {
        /* Where both halves are closed the kernel tells of a hang-up: one who reads on is left his. */
        if (!c->ended)
            shutdown(c->frame.fd, SHUT_WR);
        c->state = LEAVING;
        wait_for(c, c->ended ? 0 : LOOP_READ);
    } else {
        c->state = READING;
        /* What was sent ahead is taken up from the loop, never from inside of a handler that has answered: a
         * socket that can be written to wakes us. */
        wait_for(c, c->frame.input.len > 0 ? LOOP_READ | LOOP_WRITE : LOOP_READ);
    }
    if (c->message || (c->ended && c->frame.last)) {
        c->look_ms = LOOK_MS;
        c->frame.timer = loop_timer(c->host->loop, LOOK_MS, look_at_delivery, c);
    }
    c->host->changed(c->host->arg);
}

/* Sends what the socket takes. -1: the client is gone. */
static int flush(struct http_conn *c)
{
    size_t skip = c->sent > c->head_len ? c->sent - c->head_len : 0;
    size_t head_done = c->sent - skip;
    struct iovec parts[2] = {{c->head + head_done, c->head_len - head_done}};
    struct msghdr m = {.msg_iov = parts, .msg_iovlen = 1};
    if (c->body.len > 0)
        parts[m.msg_iovlen++] = (struct iovec){c->body.data + skip, c->body.len - skip};
    ssize_t n = sendmsg(c->frame.fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (http_frame_lost(n))
        return -1;
    if (n > 0)
        c->sent += (size_t)n;
    if (c->sent == c->head_len + c->body.len)
        written(c);
    else
        wait_for(c, LOOP_WRITE);
    return 0;
}

static void begin_answer(struct http_conn *c)
{
    c->state = WRITING;
    c->sent = 0;
    c->frame.last = !c->frame.parser.keep_alive || (c->ended && c->frame.input.len == 0);
    http_parser_release(&c->frame.parser);
    http_parser_init(&c->frame.parser);
}

/* The sink of a message. */
static void answer(void *arg, struct buf *response)
{
    struct http_conn *c = arg;
    if (c->frame.closed)
        return;
    begin_answer(c);
    const char *close_line = c->frame.last ? "Connection: close\r\n" : "";
    int n;
    if (response->len == 0)
        n = snprintf(c->head, sizeof c->head, "HTTP/1.1 204 No Content\r\n%s\r\n", close_line);
    else
        n = snprintf(c->head, sizeof c->head,
                     "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n%s\r\n",
                     response->len, close_line);
    c->head_len = (size_t)n;
    c->body.data = buf_take(response, &c->body.len);
    c->body.cap = c->body.len + 1;
    c->host->counts.bytes_out += c->body.len;
    /* A handler is on the stack: a failure is dealt with from the loop, which reports it again. */
    if (!c->entered && flush(c) < 0)
        wait_for(c, LOOP_WRITE);
}

static void refuse(struct http_conn *c)
{
    int status = c->frame.parser.status;
    c->host->counts.refused++;
    c->frame.parser.keep_alive = false;
    begin_answer(c);
    c->head_len = (size_t)snprintf(c->head, sizeof c->head,
                                   "HTTP/1.1 %d %s\r\n%sContent-Type: text/plain\r\nContent-Length: %zu\r\n"
                                   "Connection: close\r\n\r\n%s\n",
                                   status, http_reason(status), status == 405 ? "Allow: POST\r\n" : "",
                                   strlen(http_reason(status)) + 1, http_reason(status));
    c->frame.timer = loop_timer(c->host->loop, HTTP_LINGER_MS, on_linger, c);
    if (flush(c) < 0)
        finish(c, false);
}

/* ---- requests ---- */

static void dispatch(struct http_conn *c)
{
    c->host->counts.requests++;
    c->host->counts.bytes_in += c->frame.parser.body.len;
    c->state = CALLING;
    wait_for(c, LOOP_READ);
    struct rpc_sink sink = {answer, c};
    size_t n;
    char *body = buf_take(&c->frame.parser.body, &n);
#ifndef TOOLBOX_GUEST
    if (rpc_watch)
        ipc_peer(c->frame.fd, &rpc_peer.pid, &rpc_peer.uid);
#endif
    struct rpc_message *m = rpc_take_own(body, n, c->host->find, c->host->find_ctx, sink);
    if (c->frame.closed) { /* from inside the handler */
        if (m)
            rpc_message_abandon(m);
        return;
    }
    c->message = m;
    if (c->state != CALLING && flush(c) < 0)
        finish(c, false);
}

/* Takes up requests until one is open or the bytes are used up; returns how many were. */
static size_t consume(struct http_conn *c, const char *data, size_t n)
{
    size_t taken = 0;
    while (taken < n && c->state == READING && !c->frame.closed) {
        settle(c, true); /* who sends his next request has read the answer before */
        if (c->frame.closed)
            break;
        taken += http_frame_parse(&c->frame, data + taken, n - taken);
        if (c->frame.parser.state == HTTP_COMPLETE)
            dispatch(c);
        else if (c->frame.parser.state == HTTP_REFUSED)
            refuse(c);
    }
    return taken;
}

/* New bytes from the client. */
static void take_in(struct http_conn *c, const char *data, size_t n)
{
    size_t taken = c->frame.input.len > 0 ? 0 : consume(c, data, n);
    if (c->frame.closed || c->state == LEAVING || c->frame.last)
        return;
    buf_add(&c->frame.input, data + taken, n - taken);
    if (c->state == CALLING && c->frame.input.len >= HTTP_AHEAD_MAX)
        wait_for(c, 0); /* what it sends more stays in the socket; its end is noticed all the same */
}

/* Bytes that were sent ahead. */
static void take_up(struct http_conn *c)
{
    struct buf input = c->frame.input;
    buf_init(&c->frame.input, BUF_NO_MAX);
    wait_for(c, LOOP_READ);
    take_in(c, input.data, input.len);
    buf_release(&input);
}

/* The client has closed its half. When it is gone for good that is told as a hang-up; until then it gets the
 * answer to what it has asked, and has time to read it. */
static void take_end(struct http_conn *c)
{
    bool waits = c->state == CALLING, reads = c->message && !waits && !has_read_all(c);
    if (c->ended || (!waits && !reads)) {
        finish(c, true);
        return;
    }
    c->ended = true;
    if (reads)
        c->state = LEAVING;
    wait_for(c, 0);
}

static void read_more(struct http_conn *c)
{
    const char *data;
    ssize_t n = http_frame_read(&c->frame, &data);
    if (n > 0 && c->state != LEAVING)
        take_in(c, data, (size_t)n);
    else if (n == 0)
        take_end(c);
    else if (n == -1)
        finish(c, false);
}

static void on_event(void *arg, int events)
{
    struct http_conn *c = arg;
    c->entered = true;
    if (c->state == WRITING) {
        if ((events & LOOP_HANGUP) || flush(c) < 0)
            finish(c, false);
    } else if (c->state == CALLING && (events & LOOP_HANGUP)) {
        finish(c, false);
    } else if (c->state == READING && c->frame.input.len > 0) {
        take_up(c);
    } else {
        read_more(c);
    }
    c->entered = false;
    if (c->frame.closed)
        free(c);
}

void http_conn_new(struct http_host *host, int fd)
{
    struct http_conn *c = mem_zalloc(sizeof *c);
    c->host = host;
    c->events = LOOP_READ;
    http_parser_init(&c->frame.parser);
    buf_init(&c->body, BUF_NO_MAX);
    http_frame_open(&c->frame, &host->conns, host->loop, fd, on_event, c);
}
