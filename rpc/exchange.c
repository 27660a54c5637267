#include "exchange.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "mem.h"
#include "memory_share.h"

#define PEEK_SIZE 16384 /* the longest answer that comes with one look; longest head of any */
#define READ_STEP (1u << 20)
#define ANSWER_MAX (1u << 30)
#define SHARES 3 /* of memory: what somebody holds as one may be more as JSON */

/* What was looked at, and what is thrown away. */
static MEM_LARGE char looked[PEEK_SIZE];

static const char STRANGE[] = "the answer is no HTTP response of ours";

void exchange_init(struct exchange *x, int fd, struct span request, struct buf *answer)
{
    *x = (struct exchange){.fd = fd, .request = request, .answer = answer};
    x->head_len = (size_t)snprintf(x->head, sizeof x->head,
                                   "POST / HTTP/1.1\r\nHost: toolbox\r\nContent-Type: application/json\r\n"
                                   "Content-Length: %zu\r\n\r\n",
                                   request.n);
}

static enum exchange_want failed(struct err *err, const char *what)
{
    err_set(err, ERR_INTERNAL, "%s", what);
    errno = EPROTO;
    return EXCHANGE_FAILED;
}

/* EXCHANGE_DONE: the request is out, or the peer doesn't take it but may have said why. */
static enum exchange_want send_request(struct exchange *x, struct err *err)
{
    size_t total = x->head_len + x->request.n;
    while (x->sent < total) {
        size_t skip = x->sent > x->head_len ? x->sent - x->head_len : 0;
        struct iovec parts[2] = {{x->head + (x->sent - skip), x->head_len - (x->sent - skip)}};
        struct msghdr m = {.msg_iov = parts, .msg_iovlen = 1};
        if (x->request.n > 0)
            parts[m.msg_iovlen++] = (struct iovec){(char *)x->request.s + skip, x->request.n - skip};
        ssize_t n = sendmsg(x->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n >= 0) {
            x->sent += (size_t)n;
        } else if (errno == EAGAIN) {
            return EXCHANGE_WRITE;
        } else if (errno == EPIPE || errno == ECONNRESET) {
            x->cut = true;
            x->sent = total;
        } else if (errno != EINTR) {
            err_sys(err, ERR_INTERNAL, errno, "cannot send the request");
            return EXCHANGE_FAILED;
        }
    }
    return EXCHANGE_DONE;
}

/* recv that doesn't wait: EXCHANGE_DONE and *n > 0, or what else there is to say. */
static enum exchange_want receive(struct exchange *x, void *data, size_t size, int flags, size_t *n,
                                  struct err *err)
{
    ssize_t got;
    do
        got = recv(x->fd, data, size, flags | MSG_DONTWAIT);
    while (got < 0 && errno == EINTR);
    if (got > 0) {
        *n = (size_t)got;
        return EXCHANGE_DONE;
    }
    if (got < 0 && errno == EAGAIN)
        return EXCHANGE_READ;
    if (got == 0 || errno == ECONNRESET) {
        bool unread = x->cut || got < 0;
        failed(err, "the connection was closed without an answer");
        errno = unread && !x->in_body ? ECONNRESET : EPIPE;
        return EXCHANGE_FAILED;
    }
    err_sys(err, ERR_INTERNAL, errno, "cannot read the answer");
    return EXCHANGE_FAILED;
}

/* The value of a field of the head (it ends with a line feed, and with a NUL behind); NULL: there is none. */
static const char *field_of(const char *head, const char *name)
{
    size_t n = strlen(name);
    for (const char *line = strchr(head, '\n'); line; line = strchr(line + 1, '\n'))
        if (strncasecmp(line + 1, name, n) == 0 && line[1 + n] == ':')
            return line + 2 + n + strspn(line + 2 + n, " ");
    return NULL;
}

/* What doesn't fit would cost whatever the kernel ends first; whoever has it keeps it. */
static bool fits(unsigned long long n, struct err *err)
{
    struct memory_share share = {0};
    if (n <= SHARES * memory_share(&share, (size_t)n, ANSWER_MAX / SHARES))
        return true;
    err_set(err, ERR_TOOL, "the answer has %llu MiB, for which there is not the memory", n >> 20);
    errno = EPROTO;
    return false;
}

/* Reads the head; sets x->length. False: err says what is wrong with it. */
static bool read_head(struct exchange *x, const char *head, struct err *err)
{
    static const char start[] = "HTTP/1.1 ";
    char *end = NULL;
    long status = strncmp(head, start, sizeof start - 1) == 0 ? strtol(head + sizeof start - 1, &end, 10) : 0;
    const char *length = field_of(head, "Content-Length");
    unsigned long long n = length ? strtoull(length, NULL, 10) : 0;
    if (status < 200 || status > 599 || n > ANSWER_MAX || (status == 200 && n == 0)) {
        failed(err, STRANGE);
        return false;
    }
    if (status != 200 && status != 204) {
        err_set(err, ERR_INTERNAL, "the request was refused: HTTP %ld%.*s", status, (int)strcspn(end, "\r\n"),
                end);
        return false;
    }
    x->length = (size_t)n;
    return fits(n, err);
}

/* Takes n bytes that were looked at. */
static enum exchange_want take(struct exchange *x, size_t n, struct err *err)
{
    enum exchange_want want = EXCHANGE_DONE;
    for (size_t got; n > 0 && want == EXCHANGE_DONE; n -= got) {
        got = 0;
        want = receive(x, looked, n, 0, &got, err);
    }
    return want;
}

/* The head is in x->answer whole, up to its empty line at `end`. EXCHANGE_DONE: what is behind it stays
 * there. */
static enum exchange_want head_complete(struct exchange *x, char *end, struct err *err)
{
    size_t head = (size_t)(end + 4 - x->answer->data);
    end[3] = '\0';
    if (!read_head(x, x->answer->data, err))
        return EXCHANGE_FAILED;
    buf_consume(x->answer, head);
    buf_truncate(x->answer, x->length);
    x->in_body = true;
    return EXCHANGE_DONE;
}

static enum exchange_want receive_head(struct exchange *x, struct err *err)
{
    for (;;) {
        size_t n;
        enum exchange_want want = receive(x, looked, sizeof looked, MSG_PEEK, &n, err);
        if (want != EXCHANGE_DONE)
            return want;
        if (x->answer->len > PEEK_SIZE || buf_add(x->answer, looked, n) < 0)
            return failed(err, STRANGE);
        char *end = memmem(x->answer->data, x->answer->len, "\r\n\r\n", 4);
        if (end)
            want = head_complete(x, end, err);
        /* Unless the end was in sight, it isn't among these bytes: they are taken. */
        if (want == EXCHANGE_DONE && (!end || x->answer->len < x->length))
            want = take(x, n, err);
        if (want != EXCHANGE_DONE || end)
            return want;
    }
}

static enum exchange_want receive_body(struct exchange *x, struct err *err)
{
    struct buf *b = x->answer;
    while (b->len < x->length) {
        size_t left = x->length - b->len, step = left == 1 ? 1 : left - 1, n;
        if (step > READ_STEP)
            step = READ_STEP;
        if (buf_reserve(b, step) < 0)
            return failed(err, "the answer is too long");
        enum exchange_want want = receive(x, b->data + b->len, step, left == 1 ? MSG_PEEK : 0, &n, err);
        if (want != EXCHANGE_DONE)
            return want;
        b->len += n;
        b->data[b->len] = '\0';
    }
    return EXCHANGE_DONE;
}

/* An answer that came whole with its head needs none. */
static bool is_its_turn(struct exchange *x)
{
    if (!x->turn || x->answer->len == x->length)
        return true;
    if (!*x->turn)
        *x->turn = x;
    return *x->turn == x;
}

enum exchange_want exchange_run(struct exchange *x, struct err *err)
{
    enum exchange_want want = send_request(x, err);
    if (want == EXCHANGE_DONE && !x->in_body)
        want = receive_head(x, err);
    if (want == EXCHANGE_DONE)
        want = is_its_turn(x) ? receive_body(x, err) : EXCHANGE_TURN;
    return want;
}

bool exchange_send(struct exchange *x)
{
    struct err err; /* it comes again in exchange_run */
    return send_request(x, &err) == EXCHANGE_DONE;
}

void exchange_take_rest(int fd)
{
    ssize_t n;
    do
        n = recv(fd, looked, sizeof looked, MSG_DONTWAIT);
    while (n == (ssize_t)sizeof looked || (n < 0 && errno == EINTR));
}
