/* The answers to runs. */
#include <string.h>

#include "io.h"
#include "proc.h"
#include "session_internal.h"
#include "session_shell.h"

int64_t session_run_fail(struct session_call *c, const struct err *err)
{
    session_call_answered(c);
    c->done.run(c->arg, NULL, err);
    return -1;
}

int64_t session_run_give(struct session_call *c, struct run_result *r)
{
    r->output = buf_str(&c->answer);
    r->output_len = c->answer.len;
    c->run.answered = true;
    c->run.omitted = r->omitted_bytes;
    session_call_answered(c);
    c->done.run(c->arg, r, NULL);
    return -1;
}

/* A terminal behind ours ends lines as a printer would. */
static void end_lines(struct buf *text)
{
    size_t to = 0;
    for (size_t i = 0; i < text->len; i++)
        if (text->data[i] != '\r' || i + 1 == text->len || text->data[i + 1] != '\n')
            text->data[to++] = text->data[i];
    buf_truncate(text, to);
}

/* What looks like a prompt is no output yet: the end will show. */
static void hold_prompt(struct session *s)
{
    struct span line = terminal_last_line(&s->terminal);
    size_t n = shell_count_prompt(&s->shell, line);
    capture_commit(s->capture);
    capture_hold(s->capture, line.s + line.n - n, n);
}

int64_t session_run_answer(struct session *s, struct session_call *c, enum run_state state)
{
    struct run_result r = {.state = state,
                           .duration_ms = now_ms() - c->began,
                           .cwd = s->shell.known.cwd,
                           .notice = s->shell.notice};
    if (state == RUN_AWAITING_INPUT || state == RUN_EXITED) /* at a timeout it may yet be the prompt */
        capture_commit(s->capture);
    else if (state == RUN_TIMEOUT && shell_is_mute(&s->shell))
        hold_prompt(s);
    capture_text(s->capture, &c->answer);
    const struct inner *in = &s->inner;
    if (in->begun)
        end_lines(&c->answer);
    if (in->ended)
        r.cwd = in->cwd;
    if (state == RUN_COMPLETED) {
        r.has_exit_code = s->shell.known.status != STATUS_UNKNOWN;
        r.exit_code = in->ended ? in->status : s->shell.known.status;
        r.error = r.has_exit_code && !in->ended ? s->shell.known.error : NULL;
    } else if (state == RUN_EXITED) {
        r.has_exit_code = true;
        r.exit_code = shell_exit_code(&s->shell);
        s->calls.told_end = true;
    }
    if (state == RUN_COMPLETED || state == RUN_EXITED)
        shell_end_notes(&s->shell);
    r.omitted_bytes = capture_omitted(s->capture);
    if (state == RUN_COMPLETED || state == RUN_EXITED) {
        session_run_ended(s, &r);
    } else {
        session_run_leave(s);
        capture_drop_text(s->capture);
    }
    return session_run_give(c, &r);
}

int64_t session_run_refuse(const struct session *s, struct session_call *c)
{
    struct err err;
    char name[16] = "", shell[16];
    pid_t group = pty_foreground(&s->terminal.pty);
    enum waiting w = shell_look(&s->shell, LOOK_AT_ALL);
    proc_name(s->shell.pid, shell);
    if (group != s->shell.pid)
        proc_name(group, name);
    else if (shell_is_replaced(&s->shell))
        snprintf(name, sizeof name, "%s", shell); /* exec */
    const char *whose = s->shell.kind->is_shell ? "the shell" : "the program";
    char starting[40];
    snprintf(starting, sizeof starting, "%s is still starting", whose);
    struct proc p;
    if (proc_read(s->shell.pid, &p) == 0 && p.state == 'T') {
        err_set(&err, ERR_TOOL,
                "%s has been stopped; send it CONT with bash_session_signal, or restart the session", whose);
        return session_run_fail(c, &err);
    }
    const char *what = s->shell.state == SHELL_STARTING ? starting : "the session is busy";
    if (*name)
        err_set(&err, ERR_TOOL,
                "%s: '%s' is %s; wait, type into it with bash_session, interrupt it with input \"\\u0003\", "
                "or restart the session",
                what, name, w == WAITING_NOT || w == WAITING_FAR_END ? "still running" : "waiting for input");
    else
        err_set(&err, ERR_TOOL, "%s: %s is %s interrupt it with input \"\\u0003\", or restart the session",
                what, whose,
                w == WAITING_SHELL
                    ? "in the middle of a command that was not finished; finish it with bash_session,"
                    : "still running a command; wait,");
    return session_run_fail(c, &err);
}

int64_t session_run_refuse_for_good(const struct session *s, struct session_call *c)
{
    struct err err;
    bool could = s->shell.channel.pty.master >= 0;
    err_set(&err, ERR_TOOL, "%s %s; use bash_session instead", s->shell.path,
            could ? "does not tell when a command has ended"
                  : "can't tell when a command has ended, for want of a second terminal (is /dev/pts full, "
                    "or this a "
                    "gVisor of 2022?)");
    return session_run_fail(c, &err);
}
