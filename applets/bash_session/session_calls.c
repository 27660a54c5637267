/* Calls on a session: one is served at a time, and a call that has been answered holds its place until it is
 * known whether the answer arrived. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io.h"
#include "mem.h"
#include "session_internal.h"

/* How often a waiting call looks again: at once at first, seldom when nothing has happened for long. */
#define TICK_MAX_MS 20
#define TICK_QUIET_MS 100
#define QUIET_MS 1000
/* A look at all processes costs more. */
#define THOROUGH_MIN_MS 40
#define THOROUGH_MAX_MS 5000
#define PROMPT_US 50 /* between "about to prompt" and waiting for input */
#define PROMPT_TRIES 10
#define DELIVERY_MS 5000 /* for a client to take its answer while another call waits */
#define BULK_BYTES 4096
#define BULK_PAUSE_MS 20 /* what counts as a pause of a stream that has given that many */

/* ---- the queue ---- */

/* Something has happened, and more may soon. */
void session_stir(struct session *s)
{
    s->last_activity = now_ms();
    s->tick_ms = 1;
    s->thorough_ms = THOROUGH_MIN_MS;
    s->thorough_at = s->last_activity + THOROUGH_MIN_MS;
}

/* A client that does not take its answer must not hold up the others for ever: what it was given is given
 * again. */
static void give_up_on(struct session *s, struct session_call *c)
{
    c->kind->delivered(s, c, false);
    c->state = CALL_LOST;
    s->calls = c->next;
    if (!s->calls)
        s->calls_end = &s->calls;
}

static void release(struct session *s, struct session_call *c)
{
    for (struct session_call **at = &s->calls; *at; at = &(*at)->next) {
        if (*at == c) {
            *at = c->next;
            if (!*at)
                s->calls_end = at;
            break;
        }
    }
    buf_release(&c->input);
    buf_release(&c->answer);
    free(c);
}

static void start_first(struct session *s)
{
    struct session_call *c = s->calls;
    if (c && c->next && c->state == CALL_ANSWERED && now_ms() - c->answered >= DELIVERY_MS) {
        give_up_on(s, c);
        c = s->calls;
    }
    if (c && c->orphan && c->state == CALL_ANSWERED) {
        c->kind->delivered(s, c, false);
        release(s, c);
        c = s->calls;
    }
    if (!c || c->state != CALL_QUEUED || s->ending)
        return;
    c->state = CALL_ACTIVE;
    c->began = now_ms();
    s->tick_ms = 1;
    c->kind->begin(s, c);
}

static void enqueue(struct session *s, struct session_call *c)
{
    c->state = CALL_QUEUED;
    *s->calls_end = c;
    s->calls_end = &c->next;
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
    loop_timer_set(s->tick, 0);
}

void session_abandon(struct session *s, struct session_call *c)
{
    c->orphan = c->state == CALL_ACTIVE && !c->kind->abandon(s, c);
    if (!c->orphan)
        release(s, c);
    loop_timer_set(s->tick, 0);
}

/* ---- the active call ---- */

/* All processes are looked at in ever longer intervals. */
static bool look_thoroughly(struct session *s)
{
    long long now = now_ms();
    if (now < s->thorough_at)
        return false;
    s->thorough_at = now + s->thorough_ms;
    s->thorough_ms = s->thorough_ms * 2 < THOROUGH_MAX_MS ? s->thorough_ms * 2 : THOROUGH_MAX_MS;
    return true;
}

static enum waiting look(struct session *s)
{
    enum waiting w = session_look(s, look_thoroughly(s));
    for (int i = 0; i < PROMPT_TRIES && w == WAITING_NOT && s->prompt_after_input && s->tick_ms == 1; i++) {
        usleep(PROMPT_US);
        w = session_look(s, false);
    }
    return w;
}

bool session_settled(struct session *s)
{
    if (!s->shell)
        return true;
    if (!input_is_taken(&s->input, &s->pty))
        return false;
    enum waiting w = look(s);
    bool settled = w == WAITING_SHELL || w == WAITING_PROGRAM;
    if (w == WAITING_UNKNOWN) /* then the shell's own word, and a moment for the prompt that follows it */
        settled = s->prompt_after_input && now_ms() - s->last_activity >= BULK_PAUSE_MS;
    /* Whatever it wrote before it began to wait is there by now. */
    settled = settled && !session_drain(s);
    if (settled)
        session_note_prompt(s);
    return settled;
}

/* While a program is still taking what was typed, it is not idle. */
static void pump(struct session *s)
{
    if (channel_pump(&s->channel))
        s->tick_ms = 1;
    if (s->input.pending.len == 0 || !s->shell)
        return;
    if (input_pump(&s->input, &s->pty, session_look(s, false) != WAITING_NOT))
        session_stir(s);
}

static int next_tick(struct session *s)
{
    int tick = s->tick_ms;
    int most = now_ms() - s->last_activity > QUIET_MS ? TICK_QUIET_MS : TICK_MAX_MS;
    s->tick_ms = tick * 2 < most ? tick * 2 : most;
    return tick;
}

void session_evaluate(struct session *s)
{
    start_first(s);
    session_hear(s);
    session_release_stuck(s);
    pump(s);
    struct session_call *c = s->calls;
    if (c && c->state == CALL_ACTIVE && !s->ending) {
        int64_t left = c->kind->check(s, c);
        int tick = next_tick(s);
        if (left >= 0)
            loop_timer_set(s->tick, left < tick ? left : tick);
    } else if (!s->ending && (s->input.pending.len > 0 || s->channel.outgoing.pending.len > 0)) {
        loop_timer_set(s->tick, TICK_MAX_MS); /* what no call waits for any more is typed all the same */
    } else if (c && c->next && c->state == CALL_ANSWERED) {
        loop_timer_set(s->tick, DELIVERY_MS);
    }
}

void session_tick(void *session)
{
    session_evaluate(session);
}

/* ---- reads ---- */

static void describe_end(const struct session *s, struct buf *out)
{
    buf_adds(out, "the shell has ended (");
    session_describe_exit(s->exit_status, out);
    buf_adds(out, "); restart the session to go on");
}

static void read_fail(struct session_call *c, const struct err *err)
{
    session_call_answered(c);
    c->done.read(c->arg, (struct span){0}, err);
}

static void read_answer(struct session *s, struct session_call *c)
{
    struct err err;
    if (!s->shell && s->told_end && s->output.text.len == 0) {
        struct buf text BUF_AUTO = BUF_INIT;
        describe_end(s, &text);
        err_set(&err, ERR_TOOL, "%s", text.data);
        read_fail(c, &err);
        return;
    }
    if (!s->shell && !s->told_end) {
        struct buf text BUF_AUTO = BUF_INIT;
        size_t n = s->output.text.len;
        if (n > 0 && s->output.text.data[n - 1] != '\n')
            buf_addc(&text, '\n');
        buf_addc(&text, '[');
        describe_end(s, &text);
        buf_adds(&text, "]\n");
        output_add(&s->output, text.data, text.len);
        s->told_end = true;
    }
    output_answer(&s->output, c->max, &c->answer);
    session_call_answered(c);
    c->done.read(c->arg, span_of(&c->answer), NULL);
    buf_release(&c->answer);
}

/* With more behind the key that would be interrupted as well. */
static void follow_interrupt(struct session *s, const struct session_call *c)
{
    session_interrupt_end(s);
    if (input_is_interrupt(&s->pty, c->input.data, c->input.len))
        session_interrupt_follow(s);
}

static void read_begin(struct session *s, struct session_call *c)
{
    struct err err;
    if (c->input.len == 0 || !s->shell)
        return; /* nothing to type, or typed ahead */
    session_run_typed(s);
    s->prompt_after_input = false;
    follow_interrupt(s, c);
    if (input_add(&s->input, &s->pty, c->input.data, c->input.len, &err) < 0)
        read_fail(c, &err);
    buf_release(&c->input);
}

static int64_t read_check(struct session *s, struct session_call *c)
{
    session_drain(s);
    session_run_yield(s);
    long long now = now_ms();
    size_t n = s->output.text.len;
    bool came = n > 0 || s->output.omitted > 0;
    long long quiet = now - (s->last_activity > c->began ? s->last_activity : c->began);
    int64_t left = (came ? c->idle_ms : c->wait_ms) - quiet;
    if (!s->shell || n >= c->max || left <= 0 || (n >= BULK_BYTES && quiet >= BULK_PAUSE_MS) ||
        ((came || c->has_input) && session_settled(s))) {
        read_answer(s, c);
        return -1;
    }
    return left;
}

static void read_delivered(struct session *s, struct session_call *c, bool delivered)
{
    (void)c;
    output_delivered(&s->output, delivered);
}

static bool read_abandon(struct session *s, struct session_call *c)
{
    (void)s;
    (void)c;
    return true; /* nothing was taken from the output */
}

static const struct call_kind read_kind = {read_begin, read_check, read_delivered, read_abandon};

/* A key that interrupts is for the program that runs now: it doesn't wait for its turn behind the call that
 * waits for that program. */
static void type_ahead(struct session *s, struct session_call *c)
{
    if (c == s->calls || !c->has_input || !s->shell ||
        !input_has_signal_key(&s->pty, c->input.data, c->input.len))
        return;
    s->prompt_after_input = false;
    follow_interrupt(s, c);
    input_add(&s->input, &s->pty, c->input.data, c->input.len, NULL);
    buf_truncate(&c->input, 0);
}

void session_read(struct session *s, const struct read_request *r, read_done_fn done, void *arg,
                  struct session_call **call)
{
    struct session_call *c = session_call_new(s, &read_kind, r->input, r->input_len, arg);
    c->done.read = done;
    c->wait_ms = r->wait_ms;
    c->idle_ms = r->idle_ms;
    c->max = r->max;
    *call = c;
    type_ahead(s, c);
    session_evaluate(s);
}
