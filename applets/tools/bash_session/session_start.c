/* Starts a session's shell on a terminal of its own, and closes that. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "confine.h"
#include "io.h"
#include "mem.h"
#include "proc.h"
#include "safe_path.h"
#include "session_shell.h"
#include "session_state.h"
#include "spawn.h"

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

/* A program's words are its own. Only where none of them says what it is to do instead, others go in front.
 */
static bool takes_words(char *const *program)
{
    char *const *first = program + 1;
    if (*first && kind_of(*first)->names && kind_of(*first) == kind_of(*program)) /* busybox ash */
        first++;
    for (char *const *at = first; *at; at++)
        if ((**at != '-' && **at != '+') || (at[0][1] != '-' && strchr(*at, 'c')))
            return false;
    return true;
}

static const struct shell_kind *own_kind(const struct shell *sh)
{
    const struct shell_kind *kind = kind_of(sh->path);
    bool other =
        sh->options->program && (kind->is_shell || kind->start.args[0]) && !takes_words(sh->options->program);
    return other ? kind_of("") : kind;
}

void shell_end_notes(struct shell *sh)
{
    sh->terminal->notes = sh->kind->start.setup == shell_posix_setup;
}

void shell_choose_kind(struct shell *sh)
{
    sh->kind = sh->channel.pty.master >= 0 ? own_kind(sh) : kind_of("");
    sh->channel.sourced = sh->kind->start.setup == shell_posix_setup;
    shell_end_notes(sh);
}

bool shell_lacks_channel(const struct shell *sh)
{
    return sh->channel.pty.master < 0 && own_kind(sh)->is_shell;
}

/* What its user has given it there. */
static const char *former(const struct shell *sh)
{
    const char *variable = sh->kind->start.env[0];
    char *name MEM_AUTO = variable ? mem_dup(variable, strcspn(variable, "=")) : NULL;
    return name ? spawn_env_get(sh->options->env, name) : NULL;
}

/* Without /proc it comes through the channel. */
static int give_startup(struct shell *sh)
{
    struct buf text BUF_AUTO = BUF_INIT;
    kind_put_startup(&text, sh->kind, sh->bare, sh->options->keeps_history, &sh->channel, former(sh));
    int fd = sh->kind->start.by_channel ? -1 : channel_code_pipe(&sh->channel, &text, sh->kind->start.seeks);
    sh->startup = fd >= 0 ? CHANNEL_CODE : sh->channel.path;
    if (fd < 0)
        channel_put_code(&sh->channel, &text);
    return fd;
}

static char *with_startup(const struct shell *sh, const char *template)
{
    struct buf word BUF_AUTO = BUF_INIT;
    kind_fill(&word, template, sh->startup);
    return mem_strdup(buf_str(&word));
}

/* As spawn_env_free frees them. */
static char **make_argv(const struct shell *sh, const char *path)
{
    static const char *const interactive[] = {"", "-i", NULL};
    const char *const *words = sh->options->program ? (const char *const *)sh->options->program : interactive;
    size_t n = 0, given = 0;
    while (words[given])
        given++;
    char **argv = mem_zalloc((given + KIND_ARGS_MAX + 2) * sizeof *argv);
    argv[n++] = mem_strdup(sh->kind->is_bash ? "bash" : path);
    if (sh->bare && sh->kind->start.bare)
        argv[n++] = mem_strdup(sh->kind->start.bare);
    for (size_t i = 0; i < KIND_ARGS_MAX && sh->kind->start.args[i]; i++)
        argv[n++] = with_startup(sh, sh->kind->start.args[i]);
    for (size_t i = 1; i < given; i++)
        argv[n++] = mem_strdup(words[i]);
    return argv;
}

static char **make_env(const struct shell *sh)
{
    char *extra[KIND_ENV_MAX + 4] = {mem_printf("TERM=%s", sh->options->term ? sh->options->term : "dumb")};
    size_t n = 1;
    for (size_t i = 0; i < KIND_ENV_MAX && sh->kind->start.env[i]; i++)
        extra[n++] = with_startup(sh, sh->kind->start.env[i]);
    if (sh->bare && sh->kind->start.bare_env)
        extra[n] = with_startup(sh, sh->kind->start.bare_env);
    if (shell_lacks_channel(sh) && !sh->options->keeps_history) { /* no start-up file says it */
        extra[n++] = mem_strdup("HISTFILE=");
        extra[n] = mem_strdup("fish_history=");
    }
    char **with_defaults = spawn_env(default_env, sh->options->env, NULL);
    char **env = spawn_env(with_defaults, extra, NULL);
    spawn_env_free(with_defaults);
    for (char **at = extra; *at; at++)
        free(*at);
    return env;
}

static pid_t spawn_one(struct shell *sh, const char *shell, struct err *err)
{
    snprintf(sh->path, sizeof sh->path, "%s", shell);
    shell_choose_kind(sh);
    int code FD_AUTO = sh->kind->start.setup ? give_startup(sh) : -1;
    char **argv = make_argv(sh, shell), **env = make_env(sh);
    const char *programs[] = {shell, NULL};
    if (sh->options->walls) {
        sh->options->walls->terminals[0] = sh->channel.path;
        sh->options->walls->terminals[1] = ttyname(sh->terminal->pty.slave);
    }
    struct spawn spawn_options = {
        .programs = programs,
        .argv = argv,
        .env = env,
        .cwd = sh->options->cwd,
        .start_dir = sh->options->start_dir,
        .user = sh->options->user,
        .confine = sh->options->walls,
        .fds = {sh->terminal->pty.slave, sh->terminal->pty.slave, sh->terminal->pty.slave},
        .more = &code,
        .n_more = code >= 0,
        .terminal = true,
        .victim = true,
    };
    pid_t pid = spawn(&spawn_options, NULL, err);
    spawn_env_free(argv);
    spawn_env_free(env);
    return pid;
}

/* A default shell of the PATH is run where nobody else could have put it; as another user it is his matter.
 */
static char *find_shell(const struct shell *sh, const char *shell)
{
    if (strchr(shell, '/') || sh->options->shell || sh->options->program || sh->options->user)
        return mem_strdup(shell);
    return safe_path_find(spawn_env_get(sh->options->env, "PATH"), shell);
}

static pid_t spawn_shell(struct shell *sh, struct err *err)
{
    const struct session_options *o = sh->options;
    const char *asked[] = {o->program ? o->program[0] : o->shell, NULL};
    struct buf tried BUF_AUTO = BUF_INIT;
    for (const char *const *at = asked[0] ? asked : default_shells; *at; at++) {
        struct err why;
        char *shell MEM_AUTO = find_shell(sh, *at);
        pid_t pid = shell ? spawn_one(sh, shell, &why) : err_set(&why, ERR_TOOL, "%s: not found", *at);
        if (pid > 0)
            return pid;
        /* A directory or user that can't be used is no matter of the shell. */
        if (shell && strncmp(why.msg, shell, strlen(shell)) != 0) {
            *err = why;
            return -1;
        }
        buf_addf(&tried, "%s%s", tried.len > 0 ? "; " : "", why.msg);
    }
    return err_set(err, ERR_TOOL, "no %s could be started (%s)", o->program ? "program" : "shell",
                   tried.data);
}

static int run_shell(struct shell *sh, struct err *err);

/* Its user's start-up files have ended it. */
static void start_again(struct shell *sh)
{
    struct err err;
    struct buf text BUF_AUTO = BUF_INIT;
    if (!sh->notice) {
        buf_adds(&text, "the start-up files ended the shell (");
        shell_describe_exit(sh, &text);
        buf_adds(&text, "); it runs without them");
        sh->notice = mem_strdup(buf_str(&text));
    }
    char *line MEM_AUTO = mem_printf("%s[%s]\n", sh->terminal->open_line ? "\n" : "", sh->notice);
    sh->terminal->owner->text(sh->terminal->arg, line, strlen(line));
    sh->bare = true;
    pty_mend(&sh->terminal->pty);
    channel_flush(&sh->channel);
    run_shell(sh, &err);
}

static void ended(void *arg, pid_t pid, int status)
{
    struct shell *sh = arg;
    struct pace *pace = sh->terminal->pace;
    (void)pid;
    sh->child_source = NULL;
    terminal_drain(sh->terminal);
    sh->pid = 0;
    sh->exit_status = status;
    bool started = sh->state != SHELL_STARTING;
    shell_happened(sh, SHELL_ENDS);
    if (!started && !sh->bare && sh->kind->is_shell && sh->kind->start.setup)
        start_again(sh);
    if (sh->state == SHELL_ENDED)
        viewers_dismiss(&sh->terminal->viewers);
    pace->look(pace->arg);
}

static void on_channel(void *arg, int events)
{
    struct shell *sh = arg;
    struct pace *pace = sh->terminal->pace;
    (void)events;
    if (shell_hear(sh))
        pace->look(pace->arg);
}

bool shell_is_replaced(const struct shell *sh)
{
    char name[16];
    proc_name(sh->pid, name);
    return *name && kind_of(name) != sh->kind;
}

/* Its arguments don't hold what it was started with, or where those say nothing its environment. */
bool shell_is_another(const struct shell *sh)
{
    char path[40];
    struct buf words BUF_AUTO = BUF_INIT;
    const char *variable = sh->kind->start.env[0], *mark = variable;
    for (int i = 0; i < KIND_ARGS_MAX && sh->kind->start.args[i]; i++)
        mark = sh->kind->start.args[i];
    if (!mark || !sh->startup)
        return false;
    char *own MEM_AUTO = with_startup(sh, mark);
    bool environ = mark == variable;
    snprintf(path, sizeof path, "/proc/%ld/%s", (long)sh->pid, environ ? "environ" : "cmdline");
    return io_read_file(AT_FDCWD, path, &words) == 0 && (words.len > 0 || environ) &&
           !memmem(words.data, words.len, own, strlen(own));
}

bool shell_start_bare(struct shell *sh)
{
    char name[16];
    pid_t group = pty_foreground(&sh->terminal->pty);
    if (sh->bare || !sh->kind->is_shell || !sh->kind->start.setup)
        return false;
    proc_name(group ? group : sh->pid, name);
    sh->notice = mem_printf(
        "the start-up files went no further than '%s', which was ended; the shell runs without them", name);
    if (group)
        kill(-group, SIGKILL);
    kill(-sh->pid, SIGKILL);
    return true;
}

void shell_watch(struct shell *sh)
{
    struct loop *loop = sh->terminal->loop;
    loop_drop(&sh->channel_source);
    sh->child_source = loop_child(loop, sh->pid, ended, sh);
    terminal_watch(sh->terminal);
    if (sh->channel.pty.master >= 0)
        sh->channel_source = loop_fd(loop, sh->channel.pty.master, LOOP_READ, on_channel, sh);
}

void shell_close(struct shell *sh)
{
    shell_interrupt_end(sh);
    loop_drop(&sh->channel_source);
    loop_drop(&sh->child_source);
    terminal_close(sh->terminal);
    channel_close(&sh->channel);
    sh->pid = 0;
    shell_happened(sh, SHELL_ENDS);
}

static int run_shell(struct shell *sh, struct err *err)
{
    sh->pid = spawn_shell(sh, err);
    if (sh->pid < 0)
        return -1;
    sh->known.prompts = 0;
    sh->known.adopted = sh->known.seen = false;
    sh->taught = false;
    shell_hear_afresh(sh);
    sh->terminal->filter = (struct term_filter){0};
    shell_happened(sh, SHELL_STARTS);
    shell_watch(sh);
    return 0;
}

int shell_start(struct shell *sh, struct err *err)
{
    const struct session_options *o = sh->options;
    if (pty_open(&sh->terminal->pty, o->rows, o->cols, o->user, err) < 0)
        return -1;
    if (!pty_tells_foreground(&sh->terminal->pty))
        pty_lead(&sh->terminal->pty);
    channel_open(&sh->channel, o->user); /* without it a session works, but for runs */
    sh->bare = false;
    free(sh->notice);
    sh->notice = NULL;
    if (run_shell(sh, err) < 0) {
        shell_close(sh);
        return -1;
    }
    return 0;
}
