/* What a run has the shell do through the private channel, by a key of its line editor or a typed line: take
 * the command, or tell its state; and what it tells by itself. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "io.h"
#include "mem.h"
#include "proc.h"
#include "session_internal.h"
#include "session_shell.h"

#define AGAIN_MAX 10

void session_run_enter(struct session_call *c, enum run_phase phase)
{
    c->run.phase = phase;
    c->run.phase_began = now_us();
    c->run.progress = now_ms();
}

/* Has the shell run code, by a key or a line. The line editor prints a line end for a key, which is nobody's
 * output. */
void session_send_code(struct session *s, const struct buf *code, const char *typed)
{
    if (!s->capture)
        s->capture = capture_new((size_t)SESSION_OUTPUT_MAX);
    capture_mark(s->capture);
    channel_put_code(&s->shell.channel, code);
    terminal_type(&s->terminal, typed, strlen(typed));
}

/* bash's own line editor is there to be asked, at what is no continuation prompt. */
bool session_can_ask(const struct session *s)
{
    char name[16];
    proc_name(s->shell.pid, name);
    return shell_edits(&s->shell) && (!*name || shell_is_bash(name)) && !shell_continues(&s->shell);
}

int64_t session_run_ask(struct session *s, struct session_call *c, bool typed)
{
    struct buf code BUF_AUTO = BUF_INIT;
    if (!typed) {
        session_run_yield(s);
        session_stop_capture(s);
    }
    c->run.asked = true;
    c->run.prompted = terminal_ends_with(&s->terminal, s->shell.known.prompt.data, s->shell.known.prompt.len);
    c->run.again = 0;
    c->run.typed = typed;
    c->run.adopted = !s->shell.kind->is_bash || s->shell.state == SHELL_STARTING ||
                     (!s->shell.known.adopted && shell_is_another(&s->shell));
    session_run_enter(c, RUN_ASKED);
    if (!s->shell.kind->is_bash) {
        char *line MEM_AUTO = mem_printf(SHELL_SOURCE "%s\n", s->shell.channel.path);
        shell_put_posix_query(&code, &s->shell.channel);
        buf_release(&s->capture->after); /* its prompt */
        session_send_code(s, &code, line);
    } else if (c->run.adopted) {
        char *line MEM_AUTO = mem_printf(SHELL_SOURCE "%s\n", s->shell.channel.path);
        shell_put_adoption(&code, &s->shell.channel);
        session_send_code(s, &code, line);
    } else {
        shell_put_query(&code, &s->shell.channel);
        session_send_code(s, &code, SHELL_KEY);
    }
    return ASK_MS;
}

/* What else came meanwhile is somebody's: the run's own, or, before the command is typed, of what runs in the
 * background. */
void session_code_done(struct session *s, const struct session_call *c, bool typed)
{
    if (!c->run.adopted)
        capture_drop_key(s->capture, s->shell.channel.path);
    capture_commit(s->capture);
    if (!typed) {
        struct buf text BUF_AUTO = BUF_INIT;
        capture_text(s->capture, &text);
        session_stop_capture(s);
        output_add(&s->output, text.data, text.len);
    }
}

void session_run_typed_in(struct session *s, struct session_call *c)
{
    tape_mute(s->terminal.tape, 0);
    session_run_opened(s);
    s->capture = capture_new(c->max);
    shell_happened(&s->shell, SHELL_IS_GIVEN);
    c->run.asked = false;
    c->began = now_ms(); /* what the shell needed to get ready is not the command's */
    session_run_enter(c, RUN_TYPED);
}

/* What it prints in another's terms, to be found in the output. */
static void strip_prompt(struct session *s, const char *prompt)
{
    struct term_filter filter = {0};
    struct buf text BUF_AUTO = BUF_INIT;
    term_filter_feed(&filter, prompt, strlen(prompt), &text);
    capture_strip(s->capture, text.data, text.len);
}

/* The hook was in place and has not told: the command is not finished, unless the prompt is shown and nothing
 * typed behind it: a key did nothing, or the word got lost. Without it the shell has it back now,
 * and what it says of its state is what the hook would have said. */
static void take_answer(struct session *s, struct session_call *c, const struct channel_message *m)
{
    session_code_done(s, c, c->run.typed);
    s->shell.known.adopted = s->shell.known.adopted || c->run.adopted;
    session_run_enter(c, c->run.typed ? RUN_TYPED : RUN_READY);
    if (m->armed && !s->shell.told.doubted && (m->half || !c->run.prompted))
        return;
    bool struck = c->run.typed && s->shell.known.interrupted && m->status == s->shell.known.status;
    shell_learn(&s->shell, m, SHELL_ANSWERS);
    if (struck)
        s->shell.known.status = SHELL_INTERRUPTED;
    if (s->capture && m->prompt)
        strip_prompt(s, m->prompt);
    if (s->capture)
        capture_mark(s->capture);
}

/* A key has been sent: the shell is about to take code or the command. */
bool session_run_is_about_to_take(const struct session_call *c)
{
    return c->run.phase == RUN_ASKED || c->run.phase == RUN_OFFERED || c->run.phase == RUN_SHOWN;
}

struct session_call *session_active_run(const struct session *s)
{
    return s->calls.first && s->calls.first->state == CALL_ACTIVE && s->calls.first->kind == &session_run_kind
               ? s->calls.first
               : NULL;
}

/* A key that comes late finds nothing to take. */
static void withdraw_code(struct session *s, const struct session_call *c)
{
    struct buf nothing BUF_AUTO = BUF_INIT;
    channel_put_code(&s->shell.channel, &nothing);
    session_code_done(s, c, c->run.typed);
}

/* Somebody interrupted the shell when it was to take what the key stands for: a command was not begun, a
 * question may be asked again. */
int64_t session_run_lose_key(struct session *s, struct session_call *c)
{
    bool offered = c->run.phase == RUN_OFFERED;
    withdraw_code(s, c);
    c->run.asked = false;
    session_run_enter(c, c->run.typed ? RUN_TYPED : RUN_READY);
    if (!offered)
        return ASK_MS;
    s->capture = capture_new(c->max);
    shell_happened(&s->shell, SHELL_ANSWERS);
    s->shell.known.status = SHELL_INTERRUPTED;
    return session_run_answer(s, c, RUN_COMPLETED);
}

/* Whether the shell has told before that the last run has ended, so that only its prompt is waited for; from
 * now on it has. What comes then, if somebody interrupts there, is none of the run's output. */
static bool has_told(struct session *s)
{
    struct session_call *c = session_active_run(s);
    if (!s->last_run.open || s->last_run.ended || (c && session_run_is_about_to_take(c)))
        return false;
    bool before = s->last_run.told;
    s->last_run.told = true;
    return before;
}

/* `set -v` shows it before it can turn away. */
static void strip_hook(struct session *s)
{
    struct buf text BUF_AUTO = BUF_INIT;
    shell_put(&text, shell_bash_hook, &s->shell.channel);
    capture_strip(s->capture, text.data, text.len);
}

static bool prompts(void *session, bool counts)
{
    struct session *s = session;
    bool again = counts && has_told(s);
    if (!s->capture) {
        if (s->shell.kind->is_bash && s->shell.known.interrupted && s->shell.known.struck)
            output_join_ends(&s->output); /* bash ends the line for the program's end, and for its own */
        output_mark(&s->output);
    } else if (!again) {
        capture_mark(s->capture);
        strip_hook(s);
        output_forget_mark(&s->output);
    }
    s->last_run.prompt_read = s->last_run.prompt_read && again;
    s->last_run.cut = false;
    return again;
}

static void message(void *session, const struct channel_message *m)
{
    struct session *s = session;
    struct session_call *c = session_active_run(s);
    if (m->kind == 'I') /* what comes are the lines that it drops */
        s->last_run.cut = true;
    if (!c)
        return;
    if (m->kind == 'Q' && c->run.phase == RUN_ASKED) {
        take_answer(s, c, m);
    } else if (m->kind == 'T' && c->run.phase == RUN_OFFERED &&
               s->terminal.input.signalled > c->run.phase_began) {
        kill(-s->shell.pid, SIGINT); /* an interrupted parser is not given a line, which may lose its front */
    } else if (m->kind == 'T' && c->run.phase == RUN_OFFERED && c->run.announced) {
        session_run_typed_in(s, c); /* what it has shown so far is what was typed */
        pty_make_quiet(&s->terminal.pty);
        channel_acknowledge(&s->shell.channel);
    } else if (m->kind == 'T' && c->run.phase == RUN_OFFERED) {
        session_code_done(s, c, false);
        session_run_typed_in(s, c);
        terminal_type(&s->terminal, "\n", 1);
    } else if (m->kind == 'P' && m->status == SHELL_INTERRUPTED && session_run_is_about_to_take(c)) {
        session_run_lose_key(s, c);
    }
}

static bool missed(const void *session)
{
    const struct session *s = session;
    const struct session_call *c = session_active_run(s);
    return c && session_run_is_about_to_take(c) && !c->run.adopted && c->run.again < AGAIN_MAX &&
           input_is_taken(&s->terminal.input, &s->terminal.pty) &&
           shell_look(&s->shell, LOOK_CLOSELY) == WAITING_SHELL;
}

static void give_again(void *session)
{
    struct session *s = session;
    struct session_call *c = session_active_run(s);
    if (!c)
        return;
    c->run.again++;
    c->run.progress = now_ms();
    if (input_is_taken(&s->shell.channel.outgoing, &s->shell.channel.pty))
        channel_repeat_code(&s->shell.channel);
    terminal_type(&s->terminal, SHELL_KEY, strlen(SHELL_KEY));
}

static void forget(void *session)
{
    output_release(&((struct session *)session)->output);
}

const struct shell_owner session_shell_owner = {prompts, message, missed, give_again, forget};
