#include "client.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "exchange.h"
#include "io.h"
#include "mem.h"

/* ---- blocking ---- */

int client_call(int fd, struct span request, struct buf *answer, int timeout_ms, struct err *err)
{
    struct exchange x;
    long long end = timeout_ms < 0 ? 0 : now_ms() + timeout_ms;
    exchange_init(&x, fd, request, answer);
    for (;;) {
        enum exchange_want want = exchange_run(&x, err);
        if (want == EXCHANGE_DONE)
            return 0;
        if (want == EXCHANGE_FAILED)
            return -1;
        struct pollfd p = {.fd = fd, .events = want == EXCHANGE_READ ? POLLIN : POLLOUT};
        long long left = timeout_ms < 0 ? -1 : end - now_ms();
        if (timeout_ms >= 0 && left < 0)
            left = 0;
        int n = poll(&p, 1, (int)left);
        if (n == 0) {
            err_set(err, ERR_INTERNAL, "no answer within %d ms", timeout_ms);
            errno = ETIMEDOUT;
            return -1;
        }
        if (n < 0 && errno != EINTR)
            return err_sys(err, ERR_INTERNAL, errno, "cannot wait for the answer");
    }
}

void client_delivered(int fd)
{
    exchange_take_rest(fd);
}

/* ---- what a response says ---- */

static int error_of(struct span error, struct err *err)
{
    struct span code, message;
    struct buf text BUF_AUTO = BUF_INIT;
    if (json_kind(error) != JSON_OBJECT || !json_member(error, "code", &code, NULL) ||
        json_kind(code) != JSON_NUMBER || !json_member(error, "message", &message, NULL) ||
        !json_string_text(message, &text))
        return err_set(err, ERR_INTERNAL, "the answer's error has no code and message");
    errno = 0;
    long value = strtol(code.s, NULL, 10);
    if (errno != 0 || value < INT_MIN || value > INT_MAX)
        value = ERR_INTERNAL;
    return err_set(err, (int)value, "%s", buf_str(&text));
}

int client_result(struct span response, struct span *result, struct err *err)
{
    struct span error;
    if (json_check(response, NULL) < 0 || json_kind(response) != JSON_OBJECT)
        return err_set(err, ERR_INTERNAL, "the answer is no JSON-RPC response");
    if (json_member(response, "error", &error, NULL))
        return error_of(error, err);
    if (!json_member(response, "result", result, NULL))
        return err_set(err, ERR_INTERNAL, "the answer has neither a result nor an error");
    return 0;
}

/* ---- on a loop ---- */

struct client {
    struct exchange exchange;
    struct buf answer;
    struct loop_source *source, *timer;
    int timeout_ms;
    client_done_fn done;
    void *arg;
};

/* `done` may end the client, or keep it to say later whether the answer was delivered. */
static void finish(struct client *c, const struct err *err)
{
    struct buf answer BUF_AUTO = c->answer;
    int why = errno;
    buf_init(&c->answer, BUF_NO_MAX);
    loop_drop(&c->source);
    loop_drop(&c->timer);
    errno = why;
    c->done(c->arg, err ? (struct span){NULL, 0} : span_of(&answer), err);
}

static void on_event(void *arg, int events)
{
    struct client *c = arg;
    struct err err;
    (void)events;
    enum exchange_want want = exchange_run(&c->exchange, &err);
    if (want == EXCHANGE_DONE || want == EXCHANGE_FAILED)
        finish(c, want == EXCHANGE_DONE ? NULL : &err);
    else
        loop_fd_events(c->source, want == EXCHANGE_READ ? LOOP_READ : LOOP_WRITE);
}

static void on_timeout(void *arg)
{
    struct client *c = arg;
    struct err err;
    err_set(&err, ERR_INTERNAL, "no answer within %d ms", c->timeout_ms);
    errno = ETIMEDOUT;
    finish(c, &err);
}

struct client *client_start(struct loop *loop, int fd, struct span request, int timeout_ms,
                            client_done_fn done, void *arg)
{
    struct client *c = mem_zalloc(sizeof *c);
    buf_init(&c->answer, BUF_NO_MAX);
    exchange_init(&c->exchange, fd, request, &c->answer);
    c->timeout_ms = timeout_ms;
    c->done = done;
    c->arg = arg;
    c->source = loop_fd(loop, fd, LOOP_WRITE, on_event, c);
    if (timeout_ms >= 0)
        c->timer = loop_timer(loop, timeout_ms, on_timeout, c);
    return c;
}

void client_end(struct client *c, bool delivered)
{
    loop_drop(&c->source);
    loop_drop(&c->timer);
    if (delivered)
        exchange_take_rest(c->exchange.fd);
    close(c->exchange.fd);
    buf_release(&c->answer);
    free(c);
}
