/* One command, its own output, its real exit status.
 *
 * bash: a key makes its line editor take the command from the private channel, Enter runs it; the hook at the
 * prompt tells its status and where its output ends. Where the line editor waits and the hook has not told,
 * either the command was not finished (a continuation prompt shows) or it took the hook away: the shell is
 * asked, by the same key. Other shells get the command typed. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "io.h"
#include "mem.h"
#include "proc.h"
#include "session_internal.h"
#include "session_shell.h"

#define READY_MS 10000 /* for a shell that is still starting, at least, or whose prompt is slow */
#define START_MS 60000 /* for another program */
#define BUSY_MS 1000   /* for one that may be about to prompt */
#define GONE_MS 100    /* for a program that has just been ended */
#define UNKNOWN_TICK_MS 20
#define LINE_MAX_BYTES 4000 /* what can be typed as one line where the terminal makes lines */

/* A shell that has a line editor is about to start it. It isn't typed to meanwhile: an interrupt in the
 * middle of a line that its editor has begun to read takes the front of the line away. */
static bool starts_editor(struct session *s, bool edits)
{
    bool starts = !edits && s->shell.known.has_editor && now_ms() - s->shell.known.last_prompt < BUSY_MS;
    s->shell.known.has_editor = edits || starts;
    return starts;
}

/* Where nobody sees when the prompt has come, the shell says when it begins: so the prompt is none of the
 * output. */
static int64_t type_command(struct session *s, struct session_call *c)
{
    struct buf text BUF_AUTO = BUF_INIT;
    struct err err;
    const struct shell_kind *kind = s->shell.kind;
    bool unseen = kind->take.put == shell_put_eval && shell_look(&s->shell, LOOK_CLOSELY) == WAITING_UNKNOWN;
    c->run.announced = kind->take.announces || unseen;
    if (c->run.announced) {
        session_run_enter(c, RUN_OFFERED);
        s->capture = capture_new(c->max);
    } else {
        session_run_typed_in(s, c);
    }
    channel_flush(&s->shell.channel);
    if (unseen)
        shell_put_announcement(&c->input, &s->shell.channel);
    if (!kind->take.as_typed || unseen || c->input.len >= LINE_MAX_BYTES ||
        (c->input.len > 0 && memchr(c->input.data, '\n', c->input.len))) {
        kind->take.put(&text, c->input.data, c->input.len, &s->shell.channel);
        channel_put_code(&s->shell.channel, &text);
        buf_truncate(&c->input, 0);
        kind_fill(&c->input, kind->take.line, s->shell.channel.path);
    }
    buf_addc(&c->input, '\n');
    if (input_add(&s->terminal.input, &s->terminal.pty, c->input.data, c->input.len, &err) < 0)
        return session_run_fail(c, &err);
    buf_release(&c->input);
    input_pump(&s->terminal.input, &s->terminal.pty, true);
    return ASK_MS;
}

static int64_t give_command(struct session *s, struct session_call *c)
{
    struct buf text BUF_AUTO = BUF_INIT;
    bool edits = shell_edits(&s->shell);
    if (starts_editor(s, edits))
        return UNKNOWN_TICK_MS;
    while (c->input.len > 0 && c->input.data[c->input.len - 1] == '\n')
        buf_truncate(&c->input, c->input.len - 1);
    terminal_drain(&s->terminal);
    if (session_lines_type_all(s))
        return UNKNOWN_TICK_MS; /* of the one before */
    session_show_command(s, &c->input, edits);
    session_run_yield(s);
    session_run_close(s);
    session_stop_capture(s);
    inner_release(&s->inner);
    shell_end_notes(&s->shell);
    if (shell_is_mute(&s->shell))
        return session_lines_begin(s, c);
    output_drop_prompt(&s->output, s->shell.known.prompt.data, s->shell.known.prompt.len);
    shell_happened(&s->shell, SHELL_IS_GIVEN);
    if (edits) {
        shell_put_command(&text, c->input.data, c->input.len, &s->shell.channel);
        session_run_enter(c, RUN_OFFERED);
        session_send_code(s, &text, SHELL_KEY);
        buf_release(&c->input);
        return ASK_MS;
    }
    return type_command(s, c);
}

/* Interrupted as it told or read a line it reads on, and tells when the line ends, or has lost its hook. */
static bool is_woken(struct session *s, struct session_call *c)
{
    const struct shell_kind *kind = s->shell.kind;
    bool struck = (kind->ends_line || kind->is_csh) && s->shell.known.interrupted &&
                  s->shell.known.waits == WAITING_SHELL;
    if (c->run.asked || (!struck && !shell_lost_hook(&s->shell)))
        return false;
    c->run.asked = true;
    shell_wake(&s->shell);
    return true;
}

/* ---- checks, one a phase ---- */

/* It never gets to its prompt with its user's start-up files. */
static int64_t start_bare(struct session *s, struct session_call *c)
{
    if (!shell_start_bare(&s->shell))
        return session_run_refuse_for_good(s, c);
    c->began = now_ms();
    c->run.asked = false;
    return READY_MS;
}

/* Ready for a command, refused for good, or (0) not yet. A shell whose start was interrupted has not got its
 * hook. */
static int64_t check_settled(struct session *s, struct session_call *c)
{
    if (shell_at_prompt(&s->shell, shell_waits(&s->shell), session_prompt_shown(s)))
        return give_command(s, c);
    if (s->shell.state == SHELL_STARTING && now_ms() - c->began < BUSY_MS)
        return 0;
    if (s->shell.state == SHELL_STARTING && (c->run.asked || !session_can_ask(s)))
        return start_bare(s, c);
    if (!c->run.asked && session_can_ask(s))
        return session_run_ask(s, c, false);
    bool soon;
    if (is_woken(s, c))
        return READY_MS;
    return session_inner_waits(s, &soon) || soon ? 0 : session_run_refuse(s, c);
}

/* It has not told for so long: its start-up file may have a lot to do, for as long as the call may take. */
static int64_t check_late(struct session *s, struct session_call *c, long long spent)
{
    if (shell_is_replaced(&s->shell))
        return start_bare(s, c);
    if (shell_look(&s->shell, LOOK_AT_ALL) != WAITING_NOT)
        return session_run_refuse_for_good(s, c);
    return spent < c->run.ready_ms ? READY_MS : session_run_refuse(s, c);
}

static int64_t check_ready(struct session *s, struct session_call *c)
{
    long long now = now_ms(), spent = now - c->began;
    if (s->shell.interrupt)
        return READY_MS; /* its end is told */
    bool mute = shell_is_mute(&s->shell), starting = s->shell.state == SHELL_STARTING;
    if (shell_lacks_channel(&s->shell))
        return session_run_refuse_for_good(s, c);
    int64_t left = shell_settled(&s->shell) ? check_settled(s, c) : 0;
    if (left == 0 && starting && !mute && spent >= READY_MS)
        left = check_late(s, c, spent);
    if (left != 0)
        return left;
    bool soon;
    if (session_inner_waits(s, &soon))
        return session_inner_give(s, c);
    if (soon && spent < (s->inner.back ? READY_MS : BUSY_MS))
        return UNKNOWN_TICK_MS;
    pid_t group = pty_foreground(&s->terminal.pty);
    long long busy = now - (s->shell.known.last_prompt > c->began ? s->shell.known.last_prompt : c->began);
    bool other = s->shell.state == SHELL_RUNNING && group != 0 && group != s->shell.pid &&
                 spent >= GONE_MS; /* what tells may be a program as well */
    long long patience = s->shell.state == SHELL_PROMPTING ? READY_MS : BUSY_MS;
    if ((s->shell.state > SHELL_STARTING && (busy >= patience || other)) || (mute && spent >= START_MS) ||
        ((starting || mute) && spent >= c->run.ready_ms))
        return session_run_refuse(s, c);
    return spent < c->run.ready_ms && c->run.ready_ms - spent < READY_MS ? c->run.ready_ms - spent : READY_MS;
}

static int64_t check_key(struct session *s, struct session_call *c)
{
    struct err err;
    size_t untaken = s->shell.channel.outgoing.pending.len - s->shell.channel.outgoing.written;
    if (untaken != c->run.untaken)
        c->run.progress = now_ms();
    c->run.untaken = untaken;
    bool queued = c->run.announced && !input_is_taken(&s->terminal.input, &s->terminal.pty);
    long long left = c->run.progress + (queued ? READY_MS : ASK_MS) - now_ms();
    if (left > 0)
        return left;
    /* the terminal drops what was typed before a key that sends a signal */
    if (s->terminal.input.signalled >= c->run.phase_began - 1000LL * BUSY_MS)
        return session_run_lose_key(s, c);
    if (c->run.phase == RUN_ASKED && c->run.typed) {
        /* What it printed last is no continuation prompt: it has ended, and nobody can say how. */
        session_code_done(s, c, true);
        capture_strip(s->capture, s->shell.known.prompt.data, s->shell.known.prompt.len);
        s->shell.known.status = STATUS_UNKNOWN;
        return session_run_answer(s, c, RUN_COMPLETED);
    }
    session_code_done(s, c, false);
    err_set(
        &err, ERR_TOOL,
        "the shell does not take commands (has it been replaced, or its key bindings?); use bash_session, "
        "or restart the session");
    return session_run_fail(c, &err);
}

static int64_t check_typed(struct session *s, struct session_call *c)
{
    long long spent = now_ms() - c->began;
    bool settled = shell_settled(&s->shell);
    if (session_inner_is_back(s, settled))
        return session_run_answer(s, c, RUN_COMPLETED);
    if (settled) {
        enum waiting w = shell_waits(&s->shell);
        bool done = shell_at_prompt(&s->shell, w, session_prompt_shown(s));
        if (done && s->last_run.lines.state != LINES_NONE)
            return session_lines_go_on(s, c);
        if (done && s->shell.known.status == STATUS_UNKNOWN && !c->run.asked)
            return session_run_ask(s, c, true);
        if (done && c->run.asked) /* it has shown another one before */
            capture_strip(s->capture, s->shell.known.prompt.data, s->shell.known.prompt.len);
        if (done)
            return session_run_answer(s, c, RUN_COMPLETED);
        if (w == WAITING_SHELL && !c->run.asked && session_can_ask(s))
            return session_run_ask(s, c, true);
        if (w == WAITING_SHELL && s->shell.interrupt)
            return UNKNOWN_TICK_MS; /* it may not have noticed yet */
        if (is_woken(s, c))
            return ASK_MS;
        /* It has told of its prompt and not shown it yet: nobody knows that it waits for something else. */
        if (w == WAITING_UNKNOWN && now_ms() - s->shell.known.last_prompt < BUSY_MS)
            return UNKNOWN_TICK_MS;
        return session_run_answer(s, c, RUN_AWAITING_INPUT);
    }
    if (c->timeout_ms >= 0 && spent >= c->timeout_ms)
        return session_run_answer(s, c, RUN_TIMEOUT);
    return c->timeout_ms >= 0 ? c->timeout_ms - spent : INT32_MAX;
}

/* The command goes on, or is interrupted; what it has printed and will print is there for the next call. */
static int64_t let_go(struct session *s, struct session_call *c)
{
    if (c->run.phase == RUN_TYPED && !c->run.interrupt)
        session_lines_type_all(s);
    if (c->run.phase == RUN_TYPED)
        session_run_leave(s);
    if (c->run.phase == RUN_TYPED && c->run.interrupt)
        shell_interrupt_run(&s->shell);
    session_call_answered(c);
    loop_timer_set(s->pace.timer, 1);
    return -1;
}

static int64_t run_check(struct session *s, struct session_call *c)
{
    struct err err;
    terminal_drain(&s->terminal);
    if (c->orphan && !session_run_is_about_to_take(c))
        return let_go(s, c);
    if (!s->shell.pid && s->capture && c->run.phase != RUN_READY)
        return session_run_answer(s, c, RUN_EXITED);
    if (!s->shell.pid) {
        err_set(&err, ERR_TOOL, "the shell has ended; restart the session");
        return session_run_fail(c, &err);
    }
    switch (c->run.phase) {
    case RUN_READY:
        return check_ready(s, c);
    case RUN_SHOWN:
        return session_inner_check(s, c);
    case RUN_TYPED:
        return check_typed(s, c);
    default:
        return check_key(s, c);
    }
}

/* ---- the call ---- */

/* What has been printed since the answer, and by nobody read, is this call's. */
static void resume(struct session *s, struct session_call *c)
{
    struct last_run *last = &s->last_run;
    session_run_enter(c, RUN_TYPED);
    if (last->ended) {
        struct run_result r = last->result;
        struct capture *text = capture_new(c->max);
        capture_put_front(text, last->text.data, last->text.len, r.omitted_bytes);
        capture_text(text, &c->answer);
        r.omitted_bytes = capture_omitted(text);
        capture_free(text);
        buf_release(&last->text);
        session_run_give(c, &r);
        return;
    }
    last->waited = true;
    if (!s->capture)
        s->capture = capture_new(c->max);
    capture_resize(s->capture, c->max);
}

static void run_begin(struct session *s, struct session_call *c)
{
    struct err err;
    session_run_enter(c, RUN_READY);
    if (c->has_input)
        return;
    if (s->last_run.open) {
        resume(s, c);
        return;
    }
    err_set(&err, ERR_TOOL, "no command is running that could be waited for; give one");
    session_run_fail(c, &err);
}

static void run_delivered(struct session *s, struct session_call *c, bool delivered)
{
    if (!delivered && c->run.answered)
        session_run_unheard(s, &c->answer, c->run.omitted);
    else if (c->run.answered && s->last_run.ended)
        session_run_close(s);
    if (delivered && c->run.answered) {
        free(s->shell.notice);
        s->shell.notice = NULL;
    }
}

static void nobody(void *arg, const struct run_result *result, const struct err *err)
{
    (void)arg;
    (void)result;
    (void)err;
}

static bool run_abandon(struct session *s, struct session_call *c)
{
    c->done.run = nobody;
    if (session_run_is_about_to_take(c))
        return false;
    let_go(s, c);
    return true;
}

const struct call_kind session_run_kind = {run_begin, run_check, run_delivered, run_abandon};

void session_run(struct session *s, const struct run_request *r, run_done_fn done, void *arg,
                 struct session_call **call)
{
    struct session_call *c = session_call_new(s, &session_run_kind, r->command, r->command_len, arg);
    c->done.run = done;
    c->timeout_ms = r->timeout_ms;
    c->run.ready_ms = r->ready_ms >= 0 ? r->ready_ms : r->timeout_ms < 0 ? INT64_MAX : r->timeout_ms;
    if (r->ready_ms < 0 && c->run.ready_ms < READY_MS)
        c->run.ready_ms = READY_MS;
    c->max = r->max;
    c->run.interrupt = r->interrupt_abandoned;
    *call = c;
    session_evaluate(s);
}
