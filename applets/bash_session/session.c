/* A session's shell and terminal: start, output, end, restart. */
#include "session.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "io.h"
#include "mem.h"
#include "proc.h"
#include "session_attach.h"
#include "session_internal.h"
#include "session_shell.h"
#include "signals.h"
#include "spawn.h"

/* More than a terminal holds, so that what was written before is read; bounded, since a program can write for
 * ever. */
#define DRAIN_MAX (1u << 20)
#define SIGNAL_TRIES 20
#define TAIL_MAX 1024 /* longer than prompts are */
#define END_GRACE_MS 2000
#define END_LIMIT_MS 5000

/* ---- output ---- */

static void take_text(struct session *s, const struct buf *text)
{
    if (text->len == 0)
        return;
    size_t n = text->len < TAIL_MAX ? text->len : TAIL_MAX;
    buf_add(&s->tail, text->data + text->len - n, n);
    s->tail_after_mark += n;
    if (s->tail.len > TAIL_MAX)
        buf_consume(&s->tail, s->tail.len - TAIL_MAX);
    if (s->capture)
        capture_add(s->capture, text->data, text->len);
    else
        output_add(&s->output, text->data, text->len);
}

/* A line editor in which bracketed paste is on (we switch it off, but not for the prompt that is shown
 * already) says so when it takes a line, and ends the line: that is no output of the command. */
static size_t paste_end(const struct session *s, const char *bytes, size_t n)
{
    static const char off[] = "\033[?2004l\r";
    size_t len = sizeof off - 1;
    if (!s->capture || s->capture->head.len > 0 || n < len || memcmp(bytes, off, len) != 0)
        return 0;
    return len + (n > len && bytes[len] == '\n' ? 1 : n > len + 1 && bytes[len] == '\r' ? 2 : 0);
}

bool session_drain(struct session *s)
{
    static char bytes[65536];
    bool any = false;
    ssize_t n;
    for (size_t sum = 0; s->pty.master >= 0 && sum < DRAIN_MAX; sum += (size_t)n) {
        n = read(s->pty.master, bytes, sizeof bytes);
        if (n <= 0)
            break;
        struct buf text BUF_AUTO = BUF_INIT;
        size_t skip = paste_end(s, bytes, (size_t)n);
        session_show(s, bytes, (size_t)n);
        term_filter_feed(&s->filter, bytes + skip, (size_t)n - skip, &text);
        take_text(s, &text);
        any = true;
    }
    if (any)
        session_stir(s);
    return any;
}

static void on_terminal(void *arg, int events)
{
    struct session *s = arg;
    (void)events;
    session_drain(s);
    session_evaluate(s);
}

void session_drain_all(struct session *s)
{
    struct buf text BUF_AUTO = BUF_INIT;
    session_drain(s);
    term_filter_reset(&s->filter, &text);
    take_text(s, &text);
}

static void on_channel(void *arg, int events)
{
    (void)events;
    if (session_hear(arg))
        session_evaluate(arg);
}

enum waiting session_look(const struct session *s, bool thorough)
{
    return session_waiting(&s->pty, s->shell, s->options.user, thorough);
}

void session_note_prompt(struct session *s)
{
    if (s->prompt_noted || !s->prompt_after_input || s->tail_after_mark == 0 ||
        s->tail_after_mark > s->tail.len)
        return;
    s->prompt_noted = true;
    buf_truncate(&s->shown_prompt, 0);
    buf_add(&s->shown_prompt, s->tail.data + s->tail.len - s->tail_after_mark, s->tail_after_mark);
}

static bool ends_with(const struct buf *b, const char *text, size_t n)
{
    return n > 0 && b->len >= n && memcmp(b->data + b->len - n, text, n) == 0;
}

bool session_continues(const struct session *s)
{
    size_t n = s->ps2 ? strlen(s->ps2) : 0;
    return ends_with(&s->tail, s->ps2, n) &&
           !(s->shown_prompt.len > n && ends_with(&s->tail, s->shown_prompt.data, s->shown_prompt.len));
}

/* Between the commands of one paste the shell tells as well, and the next one may be a `read`: a prompt has a
 * line editor behind it (the terminal doesn't make lines), or at least has been printed. */
bool session_at_prompt(const struct session *s, enum waiting waiting)
{
    struct termios t;
    if (waiting == WAITING_PROGRAM || !s->prompt_after_input)
        return false;
    return !s->capture || s->capture->after.len > 0 || s->last_run.prompt_read ||
           (tcgetattr(s->pty.slave, &t) == 0 && !(t.c_lflag & ICANON));
}

/* ---- the end of the shell ---- */

int session_exit_code(int status)
{
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

void session_describe_exit(int status, struct buf *out)
{
    if (WIFSIGNALED(status))
        buf_addf(out, "signal %d, %s", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        buf_addf(out, "exit status %d", WEXITSTATUS(status));
}

static void shell_ended(void *arg, pid_t pid, int status)
{
    struct session *s = arg;
    (void)pid;
    s->child_source = NULL;
    session_drain(s);
    s->shell = 0;
    s->exit_status = status;
    s->told_end = false;
    session_evaluate(s);
}

static void close_terminal(struct session *s)
{
    session_interrupt_end(s);
    loop_drop(&s->pty_source);
    loop_drop(&s->channel_source);
    loop_drop(&s->child_source);
    pty_close(&s->pty);
    channel_close(&s->channel);
    input_release(&s->input);
    s->shell = 0;
}

/* ---- start ---- */

/* bash where there is one; sh, named in the answer, where not. With a shell asked for, that one. */
static const char *const default_shells[] = {
    "/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash", "bash", "/bin/sh", "/usr/bin/sh", "sh", NULL};

/* Nobody is there to page through a text: programs that would ask for a key after each screen don't, and less
 * doesn't complain of the terminal. The starter's own values win. */
static char *const default_env[] = {
    (char *)"PAGER=cat",
    (char *)"GIT_PAGER=cat",
    (char *)"LESS=-dFRX",
    NULL,
};

/* Without /proc it comes through the channel. */
static int give_startup(struct session *s, bool bash)
{
    struct buf text BUF_AUTO = BUF_INIT;
    shell_put_startup(&text, bash, s->options.keeps_history, &s->channel);
    int fd = channel_code_pipe(&s->channel, &text);
    s->startup = fd >= 0 ? CHANNEL_CODE : s->channel.path;
    if (fd < 0)
        channel_put_code(&s->channel, &text);
    return fd;
}

static pid_t spawn_one(struct session *s, const char *shell, struct err *err)
{
    bool bash = shell_is_bash(shell), hooked = s->channel.pty.master >= 0;
    int code FD_AUTO = hooked ? give_startup(s, bash) : -1;
    char *with_rc[] = {(char *)"bash", (char *)"--rcfile", (char *)s->startup, (char *)"-i", NULL};
    char *plain[] = {(char *)shell, (char *)"-i", NULL};
    char *env_file MEM_AUTO = mem_printf("ENV=%s", s->startup);
    char *extra[] = {(char *)"TERM=dumb", hooked && !bash ? env_file : NULL, NULL};
    char **with_defaults = spawn_env(default_env, s->options.env, NULL);
    char **env = spawn_env(with_defaults, extra, NULL);
    spawn_env_free(with_defaults);
    const char *programs[] = {shell, NULL};
    struct spawn spawn_options = {
        .programs = programs,
        .argv = hooked && bash ? with_rc : plain,
        .env = env,
        .cwd = s->options.cwd,
        .start_dir = s->options.start_dir,
        .user = s->options.user,
        .fds = {s->pty.slave, s->pty.slave, s->pty.slave},
        .more = &code,
        .n_more = code >= 0,
        .terminal = true,
        .victim = true,
    };
    pid_t pid = spawn(&spawn_options, NULL, err);
    spawn_env_free(env);
    return pid;
}

static pid_t spawn_shell(struct session *s, struct err *err)
{
    const char *asked[] = {s->options.shell, NULL};
    struct buf tried BUF_AUTO = BUF_INIT;
    for (const char *const *at = s->options.shell ? asked : default_shells; *at; at++) {
        struct err why;
        pid_t pid = spawn_one(s, *at, &why);
        if (pid > 0) {
            snprintf(s->shell_path, sizeof s->shell_path, "%s", *at);
            return pid;
        }
        /* A directory or user that can't be used is no matter of the shell. */
        if (strncmp(why.msg, *at, strlen(*at)) != 0) {
            *err = why;
            return -1;
        }
        buf_addf(&tried, "%s%s", tried.len > 0 ? "; " : "", why.msg);
    }
    return err_set(err, ERR_TOOL, "no shell could be started (%s)", tried.data);
}

static void watch_terminal(struct session *s)
{
    s->child_source = loop_child(s->loop, s->shell, shell_ended, s);
    s->pty_source = loop_fd(s->loop, s->pty.master, LOOP_READ, on_terminal, s);
    if (s->channel.pty.master >= 0)
        s->channel_source = loop_fd(s->loop, s->channel.pty.master, LOOP_READ, on_channel, s);
}

static int open_terminal(struct session *s, struct err *err)
{
    if (pty_open(&s->pty, s->options.rows, s->options.cols, s->options.user, err) < 0)
        return -1;
    channel_open(&s->channel, s->options.user); /* without it a session works, but for runs */
    pid_t pid = spawn_shell(s, err);
    if (pid < 0) {
        close_terminal(s);
        return -1;
    }
    s->shell = pid;
    s->prompts = 0;
    s->adopted = false;
    s->prompt_after_input = false;
    session_hear_afresh(s);
    s->filter = (struct term_filter){0};
    watch_terminal(s);
    return 0;
}

void session_watch(struct session *s)
{
    if (s->shell > 0)
        watch_terminal(s);
    s->tick = loop_timer(s->loop, 1, session_tick, s);
}

int session_start(struct session *s, struct loop *loop, const struct session_options *options,
                  struct err *err)
{
    *s = (struct session){
        .loop = loop,
        .options = *options,
        .pty = PTY_INIT,
        .channel = {.pty = PTY_INIT},
        .output = {.text = BUF_INIT},
        .input = {.pending = BUF_INIT},
        .recent = BUF_INIT,
        .tail = BUF_INIT,
        .shown_prompt = BUF_INIT,
        .last_run = {.text = BUF_INIT},
    };
    s->calls_end = &s->calls;
    s->last_activity = now_ms();
    if (open_terminal(s, err) < 0)
        return -1;
    s->tick = loop_timer(loop, 1, session_tick, s);
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
    s->told_end = false;
    int failed = open_terminal(s, &err);
    if (failed == 0 && left > 0) /* what sleeps in the kernel ends later; it has no terminal any more */
        failed = err_set(&err, ERR_TOOL,
                         "there is a new shell, but %zu processes of the old one could not be ended; see ps",
                         left);
    r->done(r->arg, failed < 0 ? &err : NULL);
    loop_timer_set(s->tick, 0);
    free(r);
}

pid_t session_hang_up(struct session *s)
{
    pid_t group = s->shell;
    session_drain(s);
    close_terminal(s);
    if (group)
        s->exit_status = SIGHUP;
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
    if (!s->shell)
        return err_set(err, ERR_TOOL, "the shell has ended; restart the session");
    session_interrupt_end(s);
    if (signal == SIGINT)
        session_interrupt_follow(s);
    for (int i = 0; i < SIGNAL_TRIES; i++) { /* it may just be ending */
        pid_t group = pty_foreground(&s->pty);
        if (kill(group == 0 ? -s->shell : -group, signal) == 0)
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
    if (s->shell && pty_resize(&s->pty, s->options.rows, s->options.cols) < 0)
        return err_sys(err, ERR_TOOL, errno, "cannot resize the terminal");
    return 0;
}

void session_status(struct session *s, struct session_status *status)
{
    *status = (struct session_status){
        .pid = s->shell,
        .user = s->options.user_name,
        .shell = s->shell_path,
        .idle_ms = now_ms() - s->last_activity,
        .unread_bytes = s->output.text.len + s->output.omitted + session_run_unread(s),
    };
    if (!s->shell) {
        status->state = "ended";
        return;
    }
    enum waiting w = session_look(s, true);
    bool at_prompt = w != WAITING_NOT && session_at_prompt(s, w);
    status->state = at_prompt                                    ? "prompt"
                    : w == WAITING_SHELL || w == WAITING_PROGRAM ? "awaiting_input"
                                                                 : "running";
    if (!proc_link(s->shell, "cwd", status->cwd, sizeof status->cwd) && s->cwd)
        snprintf(status->cwd, sizeof status->cwd, "%s", s->cwd);
    pid_t group = pty_foreground(&s->pty);
    if (group != s->shell)
        proc_name(group, status->foreground);
}
