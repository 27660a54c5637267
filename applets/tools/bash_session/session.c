/* A session as a whole: start, end, restart, and who looks into it. */
#include "session.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>

#include "io.h"
#include "mem.h"
#include "proc.h"
#include "session_internal.h"
#include "signals.h"

#define SIGNAL_TRIES 20
#define END_GRACE_MS 2000
#define END_LIMIT_MS 5000

/* ---- viewers ---- */

/* The session's terminal doesn't echo, for the sake of those who call; people want to see what they type. Not
 * what goes to a program that draws for itself. */
static void echo(struct session *s, const char *data, size_t n)
{
    struct buf text BUF_AUTO = BUF_INIT;
    if (terminal_is_raw(&s->terminal) && shell_look(&s->shell, LOOK_CLOSELY) != WAITING_SHELL)
        return;
    for (size_t i = 0; i < n; i++) {
        if (data[i] == '\r' || data[i] == '\n')
            buf_adds(&text, "\r\n");
        else if (data[i] == '\177' || data[i] == '\b')
            buf_adds(&text, "\b \b");
        else if ((unsigned char)data[i] >= 0x20)
            buf_addc(&text, data[i]);
    }
    viewers_show(&s->terminal.viewers, text.data, text.len);
}

static void viewer_typed(void *arg, const char *keys, size_t n)
{
    struct session *s = arg;
    if (!s->shell.pid)
        return;
    echo(s, keys, n);
    session_show_typed(s, keys, n);
    session_run_typed(s);
    shell_happened(&s->shell, SHELL_IS_GIVEN);
    if (input_is_interrupt(&s->terminal.pty, keys, n))
        shell_interrupt_follow(&s->shell, NULL, 0);
    input_add(&s->terminal.input, &s->terminal.pty, keys, n, NULL);
    loop_timer_set(s->pace.timer, 0);
}

static void viewer_sized(void *arg, unsigned short rows, unsigned short cols)
{
    struct session *s = arg;
    if (s->shell.pid)
        pty_resize(&s->terminal.pty, rows, cols);
    tape_sized(s->terminal.tape, rows, cols);
}

/* Programs get the size back that their calls rely on. */
static void viewers_left(void *arg)
{
    struct session *s = arg;
    viewer_sized(s, s->options.rows, s->options.cols);
}

static const struct viewers_owner viewers_owner = {viewer_typed, viewer_sized, viewers_left};

/* ---- start ---- */

static const struct terminal_owner terminal_owner = {session_paste_end, session_take_text, session_take_note};

void session_own(struct session *s, struct loop *loop)
{
    s->loop = loop;
    s->terminal.loop = loop;
    s->terminal.pace = &s->pace;
    s->terminal.owner = &terminal_owner;
    s->terminal.arg = s;
    s->terminal.viewers.loop = loop;
    s->terminal.viewers.owner = &viewers_owner;
    s->terminal.viewers.arg = s;
    s->shell.options = &s->options;
    s->shell.terminal = &s->terminal;
    s->shell.owner = &session_shell_owner;
    s->shell.arg = s;
    s->calls.end = &s->calls.first;
}

int session_start(struct session *s, struct loop *loop, const struct session_options *options,
                  struct err *err)
{
    *s = (struct session){
        .options = *options,
        .terminal = {.pty = PTY_INIT,
                     .input = {.pending = BUF_INIT},
                     .viewers = {.recent = BUF_INIT},
                     .note = BUF_INIT,
                     .tail = BUF_INIT},
        .shell = {.channel = {.pty = PTY_INIT}, .known = {.prompt = BUF_INIT}},
        .output = {.text = BUF_INIT},
        .last_run = {.text = BUF_INIT},
    };
    session_own(s, loop);
    s->pace.last_activity = now_ms();
    if (shell_start(&s->shell, err) < 0)
        return -1;
    pace_start(&s->pace, loop, session_evaluate, s);
    return 0;
}

/* ---- restart ---- */

struct restart {
    struct session *session;
    void (*done)(void *arg, const struct err *err);
    void *arg;
};

static void tree_ended(void *arg, size_t left)
{
    struct restart *r = arg;
    struct session *s = r->session;
    struct err err;
    session_stop_capture(s);
    session_run_close(s);
    output_release(&s->output);
    s->ending = NULL;
    s->calls.told_end = false;
    struct buf living BUF_AUTO = BUF_INIT;
    if (left > 0)
        proc_put_living(&living);
    int failed = shell_start(&s->shell, &err);
    if (failed == 0 && left > 0) /* what sleeps in the kernel ends later; it has no terminal any more */
        failed =
            err_set(&err, ERR_TOOL,
                    "there is a new shell, but %zu processes of the old one could not be ended%s; see ps",
                    left, buf_str(&living));
    r->done(r->arg, failed < 0 ? &err : NULL);
    loop_timer_set(s->pace.timer, 0);
    free(r);
}

pid_t session_hang_up(struct session *s)
{
    pid_t group = s->shell.pid;
    terminal_drain(&s->terminal);
    shell_close(&s->shell);
    if (group)
        s->shell.exit_status = SIGHUP;
    session_evaluate(s); /* a call in progress gets what there was */
    return group;
}

void session_restart(struct session *s, void (*done)(void *arg, const struct err *err), void *arg)
{
    struct err err;
    if (s->ending) {
        err_set(&err, ERR_TOOL, "the session is being restarted already");
        done(arg, &err);
        return;
    }
    pid_t group = session_hang_up(s);
    struct restart *r = mem_zalloc(sizeof *r);
    *r = (struct restart){.session = s, .done = done, .arg = arg};
    struct tree_end_options all = {.group = group, .grace_ms = END_GRACE_MS, .limit_ms = END_LIMIT_MS};
    s->ending = tree_end(s->loop, &all, tree_ended, r);
}

/* ---- the rest ---- */

int session_signal(struct session *s, const char *name, struct err *err)
{
    int signal = signal_number(name);
    if (signal < 0)
        return err_set(err, ERR_TOOL, "'%s' is no signal; name one as INT, SIGTERM or 15", name);
    if (!s->shell.pid)
        return err_set(err, ERR_TOOL, "the shell has ended; restart the session");
    shell_interrupt_end(&s->shell);
    if (signal == SIGINT && shell_interrupt_now(&s->shell))
        return 0;
    for (int i = 0; i < SIGNAL_TRIES; i++) { /* it may just be ending */
        pid_t group = pty_foreground(&s->terminal.pty);
        if (kill(group == 0 ? -s->shell.pid : -group, signal) == 0)
            return 0;
        if (errno != ESRCH)
            break;
    }
    return err_sys(err, ERR_TOOL, errno, "cannot signal the foreground programs");
}

int session_resize(struct session *s, int rows, int cols, struct err *err)
{
    s->options.rows = (unsigned short)rows;
    s->options.cols = (unsigned short)cols;
    if (s->shell.pid && pty_resize(&s->terminal.pty, s->options.rows, s->options.cols) < 0)
        return err_sys(err, ERR_TOOL, errno, "cannot resize the terminal");
    tape_sized(s->terminal.tape, s->options.rows, s->options.cols);
    return 0;
}

void session_status(struct session *s, struct session_status *status)
{
    *status = (struct session_status){
        .pid = s->shell.pid,
        .user = s->options.user_name,
        .shell = s->shell.path,
        .idle_ms = now_ms() - s->pace.last_activity,
        .unread_bytes = s->output.text.len + s->output.omitted + session_run_unread(s),
    };
    if (!s->shell.pid) {
        status->state = "ended";
        return;
    }
    enum waiting w = shell_look(&s->shell, LOOK_AT_ALL);
    bool asked = w == WAITING_FAR_END && shell_is_asked(&s->shell);
    bool waits = w != WAITING_NOT || shell_is_unsure(&s->shell, LOOK_AT_ALL) != UNSURE_NOT;
    bool at_prompt = waits && shell_at_prompt(&s->shell, w, session_prompt_shown(s));
    status->state = at_prompt                                             ? "prompt"
                    : w == WAITING_SHELL || w == WAITING_PROGRAM || asked ? "awaiting_input"
                                                                          : "running";
    if (!proc_link(s->shell.pid, "cwd", status->cwd, sizeof status->cwd) && s->shell.known.cwd)
        snprintf(status->cwd, sizeof status->cwd, "%s", s->shell.known.cwd);
    pid_t group = pty_foreground(&s->terminal.pty);
    if (group != s->shell.pid)
        proc_name(group, status->foreground);
}
