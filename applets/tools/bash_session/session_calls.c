/* Calls on a session: one is served at a time, and a call that has been answered holds its place until it is
 * known whether the answer arrived. */
#include <stdlib.h>
#include <string.h>

#include "io.h"
#include "mem.h"
#include "session_internal.h"

#define TYPING_MS 20
#define DELIVERY_MS 5000 /* for a client to take its answer while another call waits */
/* ---- the queue ---- */

/* A client that does not take its answer must not hold up the others for ever: what it was given is given
 * again. */
static void give_up_on(struct session *s, struct session_call *c)
{
    c->kind->delivered(s, c, false);
    c->state = CALL_LOST;
    s->calls.first = c->next;
    if (!s->calls.first)
        s->calls.end = &s->calls.first;
}

static void release(struct session *s, struct session_call *c)
{
    for (struct session_call **at = &s->calls.first; *at; at = &(*at)->next) {
        if (*at == c) {
            *at = c->next;
            if (!*at)
                s->calls.end = at;
            break;
        }
    }
    buf_release(&c->input);
    buf_release(&c->answer);
    free(c);
}

static void start_first(struct session *s)
{
    struct session_call *c = s->calls.first;
    if (c && c->next && c->state == CALL_ANSWERED && now_ms() - c->answered >= DELIVERY_MS) {
        give_up_on(s, c);
        c = s->calls.first;
    }
    if (c && c->orphan && c->state == CALL_ANSWERED) {
        c->kind->delivered(s, c, false);
        release(s, c);
        c = s->calls.first;
    }
    if (!c || c->state != CALL_QUEUED || s->ending)
        return;
    c->state = CALL_ACTIVE;
    c->began = now_ms();
    s->pace.tick_ms = 1;
    c->kind->begin(s, c);
}

static void enqueue(struct session *s, struct session_call *c)
{
    c->state = CALL_QUEUED;
    *s->calls.end = c;
    s->calls.end = &c->next;
}

struct session_call *session_call_new(struct session *s, const struct call_kind *kind, const char *input,
                                      size_t len, void *arg)
{
    struct session_call *c = mem_zalloc(sizeof *c);
    buf_init(&c->input, BUF_NO_MAX);
    buf_init(&c->answer, BUF_NO_MAX);
    c->kind = kind;
    c->has_input = input != NULL;
    if (input)
        buf_add(&c->input, input, len);
    c->arg = arg;
    enqueue(s, c);
    return c;
}

void session_call_answered(struct session_call *c)
{
    c->state = CALL_ANSWERED;
    c->answered = now_ms();
}

void session_delivered(struct session *s, struct session_call *c, bool delivered)
{
    if (c->state != CALL_LOST)
        c->kind->delivered(s, c, delivered);
    release(s, c);
    loop_timer_set(s->pace.timer, 0);
}

void session_abandon(struct session *s, struct session_call *c)
{
    c->orphan = c->state == CALL_ACTIVE && !c->kind->abandon(s, c);
    if (!c->orphan)
        release(s, c);
    loop_timer_set(s->pace.timer, 0);
}

/* ---- the active call ---- */

/* While a program is still taking what was typed, it is not idle. */
static void pump(struct session *s)
{
    if (channel_pump(&s->shell.channel))
        s->pace.tick_ms = 1;
    if (s->terminal.input.pending.len == 0 || !s->shell.pid || shell_teach(&s->shell) ||
        io_is_readable(s->terminal.pty.slave))
        return;
    bool reading = shell_look(&s->shell, LOOK_CLOSELY) != WAITING_NOT ||
                   (s->pace.tick_ms > 1 && shell_look(&s->shell, LOOK_AT_ALL) != WAITING_NOT);
    if (input_pump(&s->terminal.input, &s->terminal.pty, reading))
        pace_stir(&s->pace);
}

void session_evaluate(void *session)
{
    struct session *s = session;
    start_first(s);
    shell_hear(&s->shell);
    shell_release_stuck(&s->shell);
    pump(s);
    struct session_call *c = s->calls.first;
    if (c && c->state == CALL_ACTIVE && !s->ending) {
        int64_t left = c->kind->check(s, c);
        int tick = pace_next(&s->pace);
        if (left >= 0)
            loop_timer_set(s->pace.timer, left < tick ? left : tick);
    } else if (!s->ending &&
               (s->terminal.input.pending.len > 0 || s->shell.channel.outgoing.pending.len > 0)) {
        loop_timer_set(s->pace.timer, TYPING_MS); /* what no call waits for any more is typed all the same */
    } else if (c && c->next && c->state == CALL_ANSWERED) {
        loop_timer_set(s->pace.timer, DELIVERY_MS);
    }
}
