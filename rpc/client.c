#include "client.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exchange.h"
#include "io.h"
#include "mem.h"

#define LOOKS 200

/* ---- blocking ---- */

static struct client_watch *watch;

void client_watch(struct client_watch *w)
{
    watch = w;
}

/* When the watch is asked next. */
static long long next_tick(void)
{
    return watch && watch->tick_ms >= 0 ? now_ms() + watch->tick_ms : LLONG_MAX;
}

/* Waits for the descriptor. 1: it is ready, or a signal came; 0: the time is over; -1 with errno:
 * ECONNABORTED when nobody wants the answer any more. The clock is only asked for where there is a time: in a
 * call that is short that costs two page faults. */
static int wait_for(int fd, short events, long long end, long long *tick)
{
    struct pollfd p[3] = {{.fd = fd, .events = events}, {.fd = -1}, {.fd = -1}};
    for (;;) {
        long long until = end < *tick ? end : *tick, now = until == LLONG_MAX ? 0 : now_ms();
        if (watch)
            memcpy(p + 1, watch->fds, sizeof watch->fds);
        int n = poll(p, 3, until == LLONG_MAX ? -1 : until > now ? (int)(until - now) : 0);
        if (n < 0)
            return errno == EINTR ? 1 : -1;
        if (p[0].revents)
            return 1;
        now = until == LLONG_MAX ? 0 : now_ms();
        if (watch && (n > 0 || now >= *tick)) {
            memcpy(watch->fds, p + 1, sizeof watch->fds);
            *tick = next_tick();
            if (watch->gone(watch))
                return errno = ECONNABORTED, -1;
        }
        if (now >= end)
            return 0;
    }
}

/* A program that waits is woken later than a short answer is there, by a tenth of such a call: so it is
 * looked for some tens of microseconds long at first. Not where whoever answers needs the same processor. */
static enum exchange_want begin(struct exchange *x, struct err *err)
{
    cpu_set_t ours;
    enum exchange_want want = exchange_run(x, err);
    if (want == EXCHANGE_READ && sched_getaffinity(0, sizeof ours, &ours) == 0 && CPU_COUNT(&ours) > 1)
        for (int i = 0; i < LOOKS && want == EXCHANGE_READ; i++)
            want = exchange_run(x, err);
    return want;
}

int client_call(int fd, struct span request, struct buf *answer, int timeout_ms, struct err *err)
{
    struct exchange x;
    long long end = timeout_ms < 0 ? LLONG_MAX : now_ms() + timeout_ms;
    long long tick = next_tick();
    exchange_init(&x, fd, request, answer);
    for (enum exchange_want want = begin(&x, err);; want = exchange_run(&x, err)) {
        if (want == EXCHANGE_DONE)
            return 0;
        if (want == EXCHANGE_FAILED)
            return -1;
        int n = wait_for(fd, want == EXCHANGE_READ ? POLLIN : POLLOUT, end, &tick);
        if (n == 0) {
            err_set(err, ERR_INTERNAL, "no answer within %d ms", timeout_ms);
            errno = ETIMEDOUT;
            return -1;
        }
        if (n < 0 && errno == ECONNABORTED)
            return err_set(err, ERR_INTERNAL, "cannot write the answer: nobody reads it any more"),
                   errno = ECONNABORTED, -1;
        if (n < 0)
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

static void leave_turn(struct client *c)
{
    struct exchange **turn = c->exchange.turn;
    if (turn && *turn == &c->exchange)
        *turn = NULL;
}

/* `done` may end the client, or keep it to say later whether the answer was delivered. */
static void finish(struct client *c, const struct err *err)
{
    struct buf answer BUF_AUTO = c->answer;
    int why = errno;
    buf_init(&c->answer, BUF_NO_MAX);
    loop_drop(&c->source);
    loop_drop(&c->timer);
    leave_turn(c);
    errno = why;
    c->done(c->arg, err ? (struct span){NULL, 0} : span_of(&answer), err);
}

static void on_event(void *arg, int events)
{
    struct client *c = arg;
    struct err err;
    if (events & LOOP_HANGUP) { /* what there is to read isn't more than the socket holds */
        leave_turn(c);
        c->exchange.turn = NULL;
    }
    enum exchange_want want = exchange_run(&c->exchange, &err);
    if (want == EXCHANGE_DONE || want == EXCHANGE_FAILED)
        finish(c, want == EXCHANGE_DONE ? NULL : &err);
    else
        loop_fd_events(c->source, want == EXCHANGE_READ    ? LOOP_READ
                                  : want == EXCHANGE_WRITE ? LOOP_WRITE
                                                           : 0);
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
    c->source = loop_fd(loop, fd, exchange_send(&c->exchange) ? LOOP_READ : LOOP_WRITE, on_event, c);
    if (timeout_ms >= 0)
        c->timer = loop_timer(loop, timeout_ms, on_timeout, c);
    return c;
}

void client_take_turns(struct client *c, struct exchange **turn)
{
    c->exchange.turn = turn;
}

void client_pause(struct client *c, bool paused)
{
    if (c->source)
        loop_fd_events(c->source, paused ? 0 : LOOP_READ | LOOP_WRITE);
}

static int release(struct client *c, bool delivered)
{
    int fd = c->exchange.fd;
    loop_drop(&c->source);
    loop_drop(&c->timer);
    leave_turn(c);
    if (delivered)
        exchange_take_rest(fd);
    buf_release(&c->answer);
    free(c);
    return fd;
}

void client_end(struct client *c, bool delivered)
{
    close(release(c, delivered));
}

int client_leave(struct client *c)
{
    return release(c, true);
}
