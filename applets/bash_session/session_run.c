/* One command, its own output, its real exit status. */
#include <stdlib.h>
#include <string.h>

#include "io.h"
#include "mem.h"
#include "proc.h"
#include "session_internal.h"

#define READY_MS 10000 /* for a shell that is still starting */

static void run_fail(struct session_call *c, const struct err *err)
{
    session_call_answered(c);
    c->done.run(c->arg, NULL, err);
}

static void run_answer(struct session *s, struct session_call *c, enum run_state state)
{
    struct run_result r = {.state = state, .duration_ms = now_ms() - c->began, .cwd = s->cwd};
    if (state == RUN_COMPLETED) {
        r.has_exit_code = true;
        r.exit_code = s->status;
    } else if (state == RUN_EXITED) {
        r.has_exit_code = true;
        r.exit_code = session_exit_code(s->exit_status);
        s->told_end = true;
    }
    if (state != RUN_COMPLETED)
        capture_commit(s->capture);
    capture_text(s->capture, &c->answer);
    r.omitted_bytes = capture_omitted(s->capture);
    r.output = buf_str(&c->answer);
    r.output_len = c->answer.len;
    capture_free(s->capture);
    s->capture = NULL;
    session_call_answered(c);
    c->done.run(c->arg, &r, NULL);
}

void session_stop_capture(struct session *s)
{
    capture_free(s->capture);
    s->capture = NULL;
}

/* ---- giving the command to the shell ---- */

static bool is_bash(const struct session *s)
{
    const char *slash = strrchr(s->shell_path, '/');
    return strncmp(slash ? slash + 1 : s->shell_path, "bash", 4) == 0;
}

/* Keys that would act on the terminal or the line editor even in a paste. */
static bool has_keys(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (((unsigned char)s[i] < 0x20 && s[i] != '\n' && s[i] != '\t') || s[i] == 0x7F)
            return true;
    return false;
}

/* As a word that any control character can stand in. */
static void put_quoted(struct buf *out, const char *s, size_t n)
{
    buf_adds(out, "eval $'");
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];
        if (c < 0x20 || c == 0x7F)
            buf_addf(out, "\\%03o", c);
        else if (c == '\'' || c == '\\')
            buf_addf(out, "\\%c", c);
        else
            buf_addc(out, (char)c);
    }
    buf_addc(out, '\'');
}

/* Pasted, as a person would: bash takes the whole text as one line of its history, tabs and all. */
static void put_command(const struct session *s, const struct session_call *c, struct buf *out)
{
    size_t n = c->input.len;
    while (n > 0 && c->input.data[n - 1] == '\n')
        n--;
    if (!is_bash(s)) {
        buf_add(out, c->input.data, n);
    } else if (has_keys(c->input.data, n)) {
        put_quoted(out, c->input.data, n);
    } else {
        buf_adds(out, "\033[200~");
        buf_add(out, c->input.data, n);
        buf_adds(out, "\033[201~");
    }
    buf_addc(out, '\n');
}

static int type_command(struct session *s, struct session_call *c)
{
    struct buf text BUF_AUTO = BUF_INIT;
    struct err err;
    put_command(s, c, &text);
    session_drain(s);
    output_drop_prompt(&s->output);
    s->prompt_after_input = false;
    if (input_add(&s->input, &s->pty, text.data, text.len, &err) < 0) {
        run_fail(c, &err);
        return -1;
    }
    session_stop_capture(s);
    s->capture = capture_new(c->max);
    c->typed = true;
    buf_release(&c->input);
    input_pump(&s->input, &s->pty, true);
    return 0;
}

/* ---- is the shell ready for it? ---- */

static int64_t refuse(const struct session *s, struct session_call *c)
{
    struct err err;
    char name[16] = "";
    pid_t group = pty_foreground(&s->pty);
    if (group != s->shell)
        proc_name(group, name);
    enum waiting w = session_look(s, true);
    if (*name)
        err_set(&err, ERR_TOOL,
                "the session is busy: '%s' is %s; wait, type into it with bash_session, interrupt it with "
                "input \"\\u0003\", "
                "or restart the session",
                name, w == WAITING_PROGRAM ? "waiting for input" : "still running");
    else
        err_set(&err, ERR_TOOL,
                "the session is busy: the shell is %s; %s interrupt it with input \"\\u0003\", or restart "
                "the session",
                w == WAITING_SHELL ? "in the middle of a command that was not finished"
                                   : "still running a command",
                w == WAITING_SHELL ? "finish it with bash_session," : "wait,");
    run_fail(c, &err);
    return -1;
}

static int64_t check_ready(struct session *s, struct session_call *c)
{
    struct err err;
    long long waited = now_ms() - c->began;
    if (!s->shell) {
        err_set(&err, ERR_TOOL, "the shell has ended; restart the session");
        run_fail(c, &err);
        return -1;
    }
    if (s->channel.pty.master < 0 || (s->prompts == 0 && waited >= READY_MS)) {
        err_set(&err, ERR_TOOL, "%s does not tell when a command has ended; use bash_session instead",
                s->shell_path);
        run_fail(c, &err);
        return -1;
    }
    if (session_settled(s)) {
        if (session_at_prompt(s, session_look(s, true)))
            return type_command(s, c) < 0 ? -1 : READY_MS;
        if (s->prompts > 0)
            return refuse(s, c);
    }
    pid_t group = pty_foreground(&s->pty);
    if (s->prompts > 0 && (waited >= 1000 || (group != 0 && group != s->shell)))
        return refuse(s, c);
    return READY_MS - waited;
}

static void run_begin(struct session *s, struct session_call *c)
{
    (void)s;
    (void)c; /* typed once the shell is ready */
}

static int64_t run_check(struct session *s, struct session_call *c)
{
    session_drain(s);
    long long spent = now_ms() - c->began;
    if (!c->typed) {
        int64_t left = check_ready(s, c);
        if (left < 0 || !c->typed)
            return left;
    }
    if (!s->shell) {
        run_answer(s, c, RUN_EXITED);
        return -1;
    }
    if (session_settled(s)) {
        run_answer(s, c, session_at_prompt(s, session_look(s, true)) ? RUN_COMPLETED : RUN_AWAITING_INPUT);
        return -1;
    }
    if (c->timeout_ms >= 0 && spent >= c->timeout_ms) {
        run_answer(s, c, RUN_TIMEOUT);
        return -1;
    }
    return c->timeout_ms >= 0 ? c->timeout_ms - spent : INT32_MAX;
}

static void run_delivered(struct session *s, struct session_call *c, bool delivered)
{
    if (!delivered)
        output_put_back(&s->output, c->answer.data, c->answer.len);
}

/* The command goes on; what it has printed and will print is there for the next call. */
static void run_abandon(struct session *s, struct session_call *c)
{
    if (!c->typed || !s->capture)
        return;
    struct buf text BUF_AUTO = BUF_INIT;
    capture_commit(s->capture);
    capture_text(s->capture, &text);
    output_add(&s->output, text.data, text.len);
    session_stop_capture(s);
}

static const struct call_kind run_kind = {run_begin, run_check, run_delivered, run_abandon};

struct session_call *session_run(struct session *s, const struct run_request *r, run_done_fn done, void *arg)
{
    struct session_call *c = session_call_new(s, &run_kind, r->command, r->command_len, arg);
    c->done.run = done;
    c->timeout_ms = r->timeout_ms;
    c->max = r->max;
    return c;
}
