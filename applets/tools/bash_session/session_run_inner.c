/* Runs in a shell or a Python that waits behind the session's shell (session_inner.h). */
#include <string.h>

#include "io.h"
#include "proc.h"
#include "session_internal.h"
#include "session_shell.h"

#define QUIET_MS 300  /* for a prompt to be one, where nobody can see who shows it */
#define PROMPT_MS 100 /* for the prompt behind what it has told */
#define TAKE_MS 10000 /* for a command to be begun */
#define INTERRUPT "\003"

/* Who waits in the foreground is a shell or a Python, or passes the terminal on to one, as far as is known;
 * behind the session's shell, or in its place. */
static bool may_be_inner(const struct session *s, enum waiting w)
{
    char name[16];
    pid_t group = pty_foreground(&s->terminal.pty);
    proc_name(group, name);
    /* A screen shows no output, and what csh takes in a line is too little. */
    if (strncmp(name, "tmux", 4) == 0 || strcmp(name, "screen") == 0 || strcmp(name, "tcsh") == 0 ||
        strcmp(name, "csh") == 0)
        return false;
    /* ksh: whether it reads a command can't be seen (shell_lost_hook). */
    bool lost =
        s->shell.kind->copies_catch && w == WAITING_SHELL && !terminal_ends_with(&s->terminal, "> ", 2);
    bool other = group == s->shell.pid ? lost || shell_is_another(&s->shell) : w == WAITING_PROGRAM;
    return w == WAITING_FAR_END || (w != WAITING_NOT && other &&
                                    (kind_of(name)->is_shell || strncmp(name, "python", 6) == 0 ||
                                     strncmp(name, "ipython", 7) == 0 || session_passes_on(group)));
}

bool session_inner_waits(struct session *s, bool *soon)
{
    enum inner_kind kind;
    *soon = false;
    if (!s->shell.kind->is_shell || s->shell.state <= SHELL_STARTING ||
        !input_is_taken(&s->terminal.input, &s->terminal.pty))
        return false;
    enum waiting w = shell_look(&s->shell, LOOK_AT_ALL);
    *soon = w == WAITING_FAR_END || (s->inner.back && w == WAITING_NOT);
    if (!may_be_inner(s, w) || (!s->inner.back && !inner_is_prompt(&s->terminal.tail, &kind)))
        return false;
    bool quiet = s->inner.back || w == WAITING_PROGRAM || w == WAITING_SHELL ||
                 now_ms() - s->pace.last_activity >= QUIET_MS;
    *soon = !quiet;
    return quiet;
}

static void type(struct session *s, struct session_call *c)
{
    struct buf text BUF_AUTO = BUF_INIT;
    session_stop_capture(s);
    s->capture = capture_new(c->max);
    s->terminal.notes = true;
    inner_put(&text, &s->inner, c->input.data, c->input.len);
    shell_happened(&s->shell, SHELL_IS_GIVEN);
    session_run_enter(c, RUN_SHOWN);
    input_add(&s->terminal.input, &s->terminal.pty, text.data, text.len, NULL);
    input_pump(&s->terminal.input, &s->terminal.pty, true);
}

int64_t session_inner_give(struct session *s, struct session_call *c)
{
    char name[16];
    enum inner_kind kind = s->inner.kind;
    if (!s->inner.back)
        inner_is_prompt(&s->terminal.tail, &kind);
    proc_name(pty_foreground(&s->terminal.pty), name);
    if (strcmp(name, "fish") == 0)
        kind = INNER_FISH;
    session_run_yield(s);
    session_run_close(s);
    session_stop_capture(s);
    s->inner.tried = 0;
    inner_begin(&s->inner, kind);
    type(s, c);
    return QUIET_MS;
}

/* It is no shell that takes commands like this, or no Python: what it has of the lines is dropped. */
static int64_t give_up(struct session *s, struct session_call *c)
{
    struct err err;
    struct buf text BUF_AUTO = BUF_INIT;
    capture_commit(s->capture);
    capture_text(s->capture, &text);
    session_stop_capture(s);
    output_add(&s->output, text.data, text.len);
    shell_end_notes(&s->shell);
    inner_release(&s->inner);
    terminal_type(&s->terminal, INTERRUPT, 1);
    err_set(&err, ERR_TOOL,
            "what waits for input there is no shell or Python that takes commands; type into it with "
            "bash_session");
    return session_run_fail(c, &err);
}

int64_t session_inner_check(struct session *s, struct session_call *c)
{
    bool late = now_ms() - c->run.progress >= TAKE_MS;
    if (!late && !shell_settled(&s->shell))
        return QUIET_MS;
    if (late || s->inner.tried == INNER_KINDS - 1)
        return give_up(s, c);
    s->inner.tried++;
    if (terminal_is_raw(&s->terminal)) /* it may wait for the rest of what it takes for its own */
        terminal_type(&s->terminal, INTERRUPT, 1);
    inner_begin(&s->inner, (s->inner.kind + 1) % INNER_KINDS);
    type(s, c);
    return QUIET_MS;
}

bool session_inner_is_back(const struct session *s, bool settled)
{
    const struct inner *in = &s->inner;
    return in->ended && (settled || now_ms() - in->ended_at >= PROMPT_MS);
}

/* What it has shown until it began is what was typed; what comes when it has ended is its prompt. */
void session_take_note(void *session, const char *text)
{
    struct session *s = session;
    struct session_call *c = session_active_run(s);
    if (s->shell.kind->start.setup == shell_posix_setup &&
        strncmp(text, SHELL_SHOWN, sizeof SHELL_SHOWN - 1) == 0)
        shell_is_shown(&s->shell);
    if (!inner_take(&s->inner, text))
        return;
    if (s->inner.ended && s->capture)
        capture_mark(s->capture);
    else if (!s->inner.ended && c && c->run.phase == RUN_SHOWN)
        session_run_typed_in(s, c);
}
