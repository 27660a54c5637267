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
#include <termios.h>

#include "io.h"
#include "mem.h"
#include "proc.h"
#include "session_internal.h"
#include "session_shell.h"

#define READY_MS 10000 /* for a shell that is still starting */
#define BUSY_MS 1000   /* for one that is about to prompt */
#define GONE_MS 100    /* for a program that has just been ended */
#define UNKNOWN_TICK_MS 20
#define AGAIN_MAX 10
#define ASK_MS 2000         /* for an answer to a key */
#define LINE_MAX_BYTES 4000 /* what can be typed as one line where the terminal makes lines */

/* ---- steps ---- */

static void enter(struct session_call *c, enum run_phase phase)
{
    c->run.phase = phase;
    c->run.phase_began = now_us();
    c->run.progress = now_ms();
}

/* The shell's own, not that of a program in the foreground. */
static bool line_editor_waits(const struct session *s)
{
    struct termios t;
    pid_t group = pty_foreground(&s->pty);
    return (group == 0 || group == s->shell) && shell_is_bash(s->shell_path) &&
           tcgetattr(s->pty.slave, &t) == 0 && !(t.c_lflag & ICANON);
}

/* Has the shell run code, by a key or a line. The line editor prints a line end for a key, which is nobody's
 * output. */
static void send_code(struct session *s, const struct buf *code, const char *typed)
{
    if (!s->capture)
        s->capture = capture_new((size_t)SESSION_OUTPUT_MAX);
    capture_mark(s->capture);
    channel_put_code(&s->channel, code);
    input_add(&s->input, &s->pty, typed, strlen(typed), NULL);
    input_pump(&s->input, &s->pty, true);
}

/* `exec` has put another program in the place of our shell: its arguments don't name our start-up file. */
static bool is_replaced(const struct session *s)
{
    char path[40];
    struct buf text BUF_AUTO = BUF_INIT;
    snprintf(path, sizeof path, "/proc/%ld/cmdline", (long)s->shell);
    return shell_is_bash(s->shell_path) && !s->adopted && io_read_file(AT_FDCWD, path, &text) == 0 &&
           text.len > 0 && !memmem(text.data, text.len, s->startup, strlen(s->startup));
}

/* bash's own line editor is there to be asked, at what is no continuation prompt. */
static bool can_ask(const struct session *s)
{
    char name[16];
    proc_name(s->shell, name);
    return line_editor_waits(s) && (!*name || shell_is_bash(name)) && !session_continues(s);
}

static int64_t ask(struct session *s, struct session_call *c, bool typed)
{
    struct buf code BUF_AUTO = BUF_INIT;
    if (!typed) {
        session_run_yield(s);
        session_stop_capture(s);
    }
    c->run.asked = true;
    c->run.again = 0;
    c->run.typed = typed;
    c->run.adopted = s->prompts == 0 || is_replaced(s);
    enter(c, RUN_ASKED);
    if (c->run.adopted) {
        char *line MEM_AUTO = mem_printf(SHELL_SOURCE "%s\n", s->channel.path);
        shell_put_adoption(&code, &s->channel);
        send_code(s, &code, line);
    } else {
        shell_put_query(&code, &s->channel);
        send_code(s, &code, SHELL_KEY);
    }
    return ASK_MS;
}

/* What else came meanwhile is somebody's: the run's own, or, before the command is typed, of what runs in the
 * background. */
static void code_done(struct session *s, const struct session_call *c, bool typed)
{
    if (!c->run.adopted)
        capture_drop_key(s->capture, s->channel.path);
    capture_commit(s->capture);
    if (!typed) {
        struct buf text BUF_AUTO = BUF_INIT;
        capture_text(s->capture, &text);
        session_stop_capture(s);
        output_add(&s->output, text.data, text.len);
    }
}

static void begin_capture(struct session *s, struct session_call *c)
{
    session_run_opened(s);
    s->capture = capture_new(c->max);
    s->prompt_after_input = false;
    c->run.asked = false;
    c->began = now_ms(); /* what the shell needed to get ready is not the command's */
    enter(c, RUN_TYPED);
}

/* A shell that has a line editor is about to start it. It isn't typed to meanwhile: an interrupt in the
 * middle of a line that its editor has begun to read takes the front of the line away. */
static bool starts_editor(struct session *s, bool edits)
{
    bool starts = !edits && s->has_editor && now_ms() - s->last_prompt < BUSY_MS;
    s->has_editor = edits || starts;
    return starts;
}

static int64_t give_command(struct session *s, struct session_call *c)
{
    struct buf text BUF_AUTO = BUF_INIT;
    struct err err;
    bool edits = line_editor_waits(s);
    if (starts_editor(s, edits))
        return UNKNOWN_TICK_MS;
    while (c->input.len > 0 && c->input.data[c->input.len - 1] == '\n')
        buf_truncate(&c->input, c->input.len - 1);
    session_drain(s);
    session_run_yield(s); /* of the one before */
    session_run_close(s);
    session_stop_capture(s);
    output_drop_prompt(&s->output, s->shown_prompt.data, s->shown_prompt.len);
    s->prompt_after_input = false;
    if (edits) {
        shell_put_command(&text, c->input.data, c->input.len, &s->channel);
        enter(c, RUN_OFFERED);
        send_code(s, &text, SHELL_KEY);
        buf_release(&c->input);
        return ASK_MS;
    }
    begin_capture(s, c);
    if (c->input.len >= LINE_MAX_BYTES || (c->input.len > 0 && memchr(c->input.data, '\n', c->input.len))) {
        shell_put_eval(&text, c->input.data, c->input.len);
        channel_put_code(&s->channel, &text);
        buf_truncate(&c->input, 0);
        buf_addf(&c->input, SHELL_SOURCE "%s", s->channel.path);
    }
    buf_addc(&c->input, '\n');
    if (input_add(&s->input, &s->pty, c->input.data, c->input.len, &err) < 0)
        return session_run_fail(c, &err);
    buf_release(&c->input);
    input_pump(&s->input, &s->pty, true);
    return ASK_MS;
}

/* What it prints in another's terms, to be found in the output. */
static void strip_prompt(struct session *s, const char *prompt)
{
    struct term_filter filter = {0};
    struct buf text BUF_AUTO = BUF_INIT;
    term_filter_feed(&filter, prompt, strlen(prompt), &text);
    capture_strip(s->capture, text.data, text.len);
}

/* The hook was in place and has not told: the command is not finished. Without it the shell has it back now,
 * and what it says of its state is what the hook would have said. */
static void take_answer(struct session *s, struct session_call *c, const struct channel_message *m)
{
    code_done(s, c, c->run.typed);
    s->adopted = s->adopted || c->run.adopted;
    enter(c, c->run.typed ? RUN_TYPED : RUN_READY);
    if (m->armed && !s->doubted)
        return;
    s->doubted = false;
    free(s->cwd);
    s->cwd = mem_strdup(m->cwd);
    s->status = m->status;
    s->prompts++;
    s->last_prompt = now_ms();
    s->prompt_after_input = true;
    if (s->capture && m->prompt)
        strip_prompt(s, m->prompt);
    if (s->capture)
        capture_mark(s->capture);
}

/* A key has been sent: the shell is about to take code or the command. */
static bool is_about_to_take(const struct session_call *c)
{
    return c->run.phase == RUN_ASKED || c->run.phase == RUN_OFFERED;
}

static struct session_call *active_run(const struct session *s)
{
    return s->calls && s->calls->state == CALL_ACTIVE && session_is_run(s->calls) ? s->calls : NULL;
}

/* A key that comes late finds nothing to take. */
static void withdraw_code(struct session *s, const struct session_call *c)
{
    struct buf nothing BUF_AUTO = BUF_INIT;
    channel_put_code(&s->channel, &nothing);
    code_done(s, c, c->run.typed);
}

/* Somebody interrupted the shell when it was to take what the key stands for: a command was not begun, a
 * question may be asked again. */
static int64_t lose_key(struct session *s, struct session_call *c)
{
    bool offered = c->run.phase == RUN_OFFERED;
    withdraw_code(s, c);
    c->run.asked = false;
    enter(c, c->run.typed ? RUN_TYPED : RUN_READY);
    if (!offered)
        return ASK_MS;
    s->capture = capture_new(c->max);
    s->prompt_after_input = true;
    s->status = SHELL_INTERRUPTED;
    return session_run_answer(s, c, RUN_COMPLETED);
}

bool session_run_told(struct session *s)
{
    struct session_call *c = active_run(s);
    if (!s->last_run.open || s->last_run.ended || (c && is_about_to_take(c)))
        return false;
    bool before = s->last_run.told;
    s->last_run.told = true;
    return before;
}

void session_run_message(struct session *s, const struct channel_message *m)
{
    struct session_call *c = active_run(s);
    if (!c)
        return;
    if (m->kind == 'Q' && c->run.phase == RUN_ASKED) {
        take_answer(s, c, m);
    } else if (m->kind == 'T' && c->run.phase == RUN_OFFERED && s->input.signalled > c->run.phase_began) {
        kill(-s->shell, SIGINT); /* an interrupted parser is not given a line, which may lose its front */
    } else if (m->kind == 'T' && c->run.phase == RUN_OFFERED) {
        code_done(s, c, false);
        begin_capture(s, c);
        input_add(&s->input, &s->pty, "\n", 1, NULL);
        input_pump(&s->input, &s->pty, true);
    } else if (m->kind == 'P' && m->status == SHELL_INTERRUPTED && is_about_to_take(c)) {
        lose_key(s, c);
    }
}

bool session_run_missed(const struct session *s)
{
    const struct session_call *c = active_run(s);
    return c && is_about_to_take(c) && !c->run.adopted && c->run.again < AGAIN_MAX &&
           input_is_taken(&s->input, &s->pty) && input_is_taken(&s->channel.outgoing, &s->channel.pty) &&
           session_look(s, false) == WAITING_SHELL;
}

void session_run_again(struct session *s)
{
    struct session_call *c = active_run(s);
    if (!c)
        return;
    c->run.again++;
    c->run.progress = now_ms();
    channel_repeat_code(&s->channel);
    input_add(&s->input, &s->pty, SHELL_KEY, strlen(SHELL_KEY), NULL);
    input_pump(&s->input, &s->pty, true);
}

/* ---- checks, one a phase ---- */

/* Ready for a command, refused for good, or (0) not yet. A shell whose start was interrupted has not got its
 * hook. */
static int64_t check_settled(struct session *s, struct session_call *c)
{
    if (session_at_prompt(s, session_look(s, true)))
        return give_command(s, c);
    if (s->prompts == 0 && now_ms() - c->began < BUSY_MS)
        return 0;
    if (s->prompts == 0 && (c->run.asked || !can_ask(s)))
        return session_run_refuse_for_good(s, c);
    if (!c->run.asked && can_ask(s))
        return ask(s, c, false);
    return session_run_refuse(s, c);
}

static int64_t check_ready(struct session *s, struct session_call *c)
{
    long long now = now_ms();
    if (s->interrupt)
        return READY_MS; /* its end is told */
    if (s->channel.pty.master < 0 || (s->prompts == 0 && now - c->began >= READY_MS))
        return session_run_refuse_for_good(s, c);
    int64_t left = session_settled(s) ? check_settled(s, c) : 0;
    if (left != 0)
        return left;
    pid_t group = pty_foreground(&s->pty);
    long long busy = now - (s->last_prompt > c->began ? s->last_prompt : c->began);
    bool other = group != 0 && group != s->shell && now - c->began >= GONE_MS;
    if (s->prompts > 0 && (busy >= BUSY_MS || other))
        return session_run_refuse(s, c);
    return READY_MS;
}

static int64_t check_key(struct session *s, struct session_call *c)
{
    struct err err;
    size_t untaken = s->channel.outgoing.pending.len - s->channel.outgoing.written;
    if (untaken != c->run.untaken)
        c->run.progress = now_ms();
    c->run.untaken = untaken;
    long long left = c->run.progress + ASK_MS - now_ms();
    if (left > 0)
        return left;
    /* the terminal drops what was typed before a key that sends a signal */
    if (s->input.signalled >= c->run.phase_began - 1000LL * BUSY_MS)
        return lose_key(s, c);
    if (c->run.phase == RUN_ASKED && c->run.typed) {
        /* What it printed last is no continuation prompt: it has ended, and nobody can say how. */
        code_done(s, c, true);
        capture_strip(s->capture, s->shown_prompt.data, s->shown_prompt.len);
        s->status = STATUS_UNKNOWN;
        return session_run_answer(s, c, RUN_COMPLETED);
    }
    code_done(s, c, false);
    err_set(
        &err, ERR_TOOL,
        "the shell does not take commands (has it been replaced, or its key bindings?); use bash_session, "
        "or restart the session");
    return session_run_fail(c, &err);
}

static int64_t check_typed(struct session *s, struct session_call *c)
{
    long long spent = now_ms() - c->began;
    if (session_settled(s)) {
        enum waiting w = session_look(s, true);
        if (session_at_prompt(s, w))
            return session_run_answer(s, c, RUN_COMPLETED);
        if (w == WAITING_SHELL && !c->run.asked && can_ask(s))
            return ask(s, c, true);
        /* It has told of its prompt and not shown it yet: nobody knows that it waits for something else. */
        if (w == WAITING_UNKNOWN && now_ms() - s->last_prompt < BUSY_MS)
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
    if (c->run.phase == RUN_TYPED)
        session_run_leave(s);
    if (c->run.phase == RUN_TYPED && c->run.interrupt)
        session_interrupt_run(s);
    session_call_answered(c);
    loop_timer_set(s->tick, 1);
    return -1;
}

static int64_t run_check(struct session *s, struct session_call *c)
{
    struct err err;
    session_drain(s);
    if (c->orphan && !is_about_to_take(c))
        return let_go(s, c);
    if (!s->shell && s->capture && c->run.phase != RUN_READY)
        return session_run_answer(s, c, RUN_EXITED);
    if (!s->shell) {
        err_set(&err, ERR_TOOL, "the shell has ended; restart the session");
        return session_run_fail(c, &err);
    }
    switch (c->run.phase) {
    case RUN_READY:
        return check_ready(s, c);
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
    enter(c, RUN_TYPED);
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
    enter(c, RUN_READY);
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
    if (is_about_to_take(c))
        return false;
    let_go(s, c);
    return true;
}

static const struct call_kind run_kind = {run_begin, run_check, run_delivered, run_abandon};

bool session_is_run(const struct session_call *c)
{
    return c->kind == &run_kind;
}

void session_run(struct session *s, const struct run_request *r, run_done_fn done, void *arg,
                 struct session_call **call)
{
    struct session_call *c = session_call_new(s, &run_kind, r->command, r->command_len, arg);
    c->done.run = done;
    c->timeout_ms = r->timeout_ms;
    c->max = r->max;
    c->run.interrupt = r->interrupt_abandoned;
    *call = c;
    session_evaluate(s);
}
