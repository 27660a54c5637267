/* The command line of jobs, for people and scripts. Each command but `run` and `logs` is one call. */
#include "exec_remote.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.h"
#include "commands/exec/command_print.h"
#include "exec_remote_logs.h"
#include "json.h"
#include "surroundings.h"

/* ---- a program ---- */

static int put_program(const struct command_line *c, struct buf *params)
{
    bool by_shell = command_value(c, "command");
    if (by_shell && c->n_words > 1)
        return usage_error(c->applet->name, "-c takes one command, not %d words", c->n_words);
    if (command_check_program(c) != EXIT_OK)
        return EXIT_USAGE;
    if (by_shell) {
        json_member_string(params, "command", c->words[0]);
        return EXIT_OK;
    }
    json_key(params, "argv");
    command_put_words(c, 0, params);
    return EXIT_OK;
}

static int put_start(const struct command_line *c, const struct env_words *env, struct buf *params)
{
    buf_addc(params, '{');
    int status = put_program(c, params);
    command_put_string(c, "user", params, "user");
    command_put_string(c, "cwd", params, "cwd");
    surroundings_put_env(params, false, env->list);
    return status == EXIT_OK ? command_put_seconds(c, "timeout", NULL, false, params, "timeout") : status;
}

static void put_umask(struct buf *params)
{
    mode_t mask = umask(0);
    umask(mask);
    json_member_int(params, "umask", (long long)mask);
}

/* As if it were started here; another user has his own surroundings. */
static int do_run(const struct command_line *c)
{
    struct buf params BUF_AUTO = BUF_INIT;
    struct env_words env ENV_WORDS_AUTO = {0};
    bool own = !command_value(c, "user");
    int status = env_words_given(&env, c);
    if (status == EXIT_OK)
        status = put_start(c, &env, &params);
    if (status != EXIT_OK)
        return status;
    if (own)
        surroundings_put(&params);
    else
        put_umask(&params);
    return exec_remote_run(c, &params, command_value(c, "command") ? "/bin/sh" : c->words[0]);
}

static int do_start(const struct command_line *c)
{
    struct buf params BUF_AUTO = BUF_INIT;
    struct buf result BUF_AUTO = BUF_INIT;
    struct env_words env ENV_WORDS_AUTO = {0};
    struct span pid;
    int status = env_words_given(&env, c);
    if (status == EXIT_OK)
        status = put_start(c, &env, &params); /* beside the server's own */
    if (status == EXIT_OK && command_value(c, "input"))
        status = command_put_text(c, command_value(c, "input"), &params, "input");
    if (command_value(c, "tty"))
        json_member_bool(&params, "pty", true);
    if (command_value(c, "stdin"))
        json_member_bool(&params, "stdin_open", true);
    if (status == EXIT_OK)
        status = command_call(c, "exec_remote_start", &params, &result);
    if (status != EXIT_OK || !json_member(span_of(&result), "pid", &pid, NULL))
        return status;
    return command_print_line(c, command_value(c, "json") ? span_of(&result) : pid);
}

/* ---- a job ---- */

static int put_job(const struct command_line *c, struct buf *params)
{
    buf_addc(params, '{');
    return command_number(c, "PID", c->words[0], params, "pid");
}

static int print_answer(const struct command_line *c, const struct buf *result)
{
    if (command_value(c, "text"))
        return exec_remote_print_text(c, span_of(result));
    return span_is(span_of(result), "null") ? EXIT_OK : command_print_line(c, span_of(result));
}

/* A call whose answer brings output; the second word, if there is one, is the member `more`. */
static int of_job(const struct command_line *c, const char *method, const char *more)
{
    struct buf params BUF_AUTO = BUF_INIT;
    struct buf result BUF_AUTO = BUF_INIT;
    const char *ack = command_value(c, "ack");
    int status = put_job(c, &params);
    if (status == EXIT_OK)
        status = command_number(c, "--ack", ack ? ack : "0", &params, "ack_seq");
    if (status == EXIT_OK)
        status = command_put_seconds(c, "timeout", NULL, false, &params, "timeout");
    if (status == EXIT_OK && more)
        status = command_put_text(c, c->words[1], &params, more);
    if (status == EXIT_OK)
        status = command_call(c, method, &params, &result);
    return status == EXIT_OK ? print_answer(c, &result) : status;
}

static int do_poll(const struct command_line *c)
{
    return of_job(c, "exec_remote_poll", NULL);
}

static int do_wait(const struct command_line *c)
{
    return of_job(c, "exec_remote_wait", NULL);
}

static int do_kill(const struct command_line *c)
{
    return of_job(c, "exec_remote_kill", NULL);
}

static int do_close(const struct command_line *c)
{
    return of_job(c, "exec_remote_close_stdin", NULL);
}

static int do_write(const struct command_line *c)
{
    return of_job(c, "exec_remote_write_stdin", "data");
}

static int do_signal(const struct command_line *c)
{
    struct buf params BUF_AUTO = BUF_INIT;
    struct buf result BUF_AUTO = BUF_INIT;
    int status = put_job(c, &params);
    json_member_string(&params, "signal", c->words[1]);
    return status == EXIT_OK ? command_call(c, "exec_remote_signal", &params, &result) : status;
}

static int do_resize(const struct command_line *c)
{
    struct buf params BUF_AUTO = BUF_INIT;
    struct buf result BUF_AUTO = BUF_INIT;
    int status = put_job(c, &params);
    if (status == EXIT_OK)
        status = command_number(c, "ROWS", c->words[1], &params, "rows");
    if (status == EXIT_OK)
        status = command_number(c, "COLS", c->words[2], &params, "cols");
    return status == EXIT_OK ? command_call(c, "exec_remote_resize", &params, &result) : status;
}

/* ---- the table ---- */

static const struct command_option options[] = {
    {"command", NULL, "what follows is one command for /bin/sh", 'c'},
    {"user", "USER", "whom it runs as (the server's user)", 0},
    {"cwd", "DIR", "where it begins (run: here; start: the server's directory)", 0},
    ENV_WORDS_OPTIONS,
    {"timeout", COMMAND_TIME,
     "of run and start: the job is killed then, as by kill (never). Of wait: answer then at the latest; the "
     "job runs "
     "on (never)",
     0},
    {"tty", NULL, "it has a terminal: of run of the size of ours, of start of 24 by 80", 't'},
    {"input", "TEXT", "text for its stdin, which ends behind it; - is ours", 0},
    {"stdin", NULL, "its stdin stays open, for write", 0},
    {"ack", "SEQ", "the last answer that was received (0)", 0},
    {"text", NULL, "print its output: stdout on stdout, stderr on stderr, and not the JSON", 0},
    {"follow", NULL, "go on until the job has ended, and exit with its status", 'f'},
    COMMAND_LIST_OPTIONS,
    {0},
};

#define START_OPTIONS "command user cwd " ENV_WORDS_TAKES " timeout"

static const struct command list[] = {
    {"run", "[--] PROGRAM [ARGUMENT]...", START_OPTIONS " tty", "run a program as if it were called directly",
     "Its stdin, stdout, stderr, signals, umask and exit status are the program's own (128+N: signal N, 127: "
     "it was "
     "not found, 126: it can't be run, 125: anything else is in the way), and so are directory and "
     "environment, unless "
     "it runs as another USER. Its stdin is a pipe, also where ours is a terminal, unless --tty gives it "
     "one: then "
     "all keys go there, and what it prints comes on stdout alone. It ends with us, also "
     "where we are "
     "killed. At the time-out TERM is sent to everything that belongs to it, after 5 seconds KILL; the "
     "status is then "
     "143, that of TERM, or 137 where it took KILL.",
     "--timeout 60 -- make test", 1, COMMAND_PROGRAM, do_run, NULL},
    {"start", "[--] PROGRAM [ARGUMENT]...", START_OPTIONS " input stdin tty json",
     "start a job and print its pid", NULL, "--cwd /srv -c 'make >log 2>&1'", 1, COMMAND_PROGRAM, do_start,
     NULL},
    {"logs", "PID", "follow", "print all it has printed that nobody has acknowledged",
     "What comes from its stderr goes to stderr. With --follow all of it is acknowledged, and so had but "
     "once.",
     "-f 4711", 1, 1, exec_remote_logs, NULL},
    {"poll", "PID", "ack text json", "its state, and its output since what was acknowledged", NULL,
     "4711 --text", 1, 1, do_poll, NULL},
    {"wait", "PID", "ack timeout text json", "as poll, but not before there is something to say", NULL,
     "4711 --ack 2 --timeout 60", 1, 1, do_wait, NULL},
    {"kill", "PID", "ack text json", "end it and everything that belongs to it",
     "TERM is sent, and after 5 seconds KILL.", "4711", 1, 1, do_kill, NULL},
    {"write", "PID TEXT", "ack text json", "write to its stdin (start --stdin)", "TEXT - is read from ours.",
     "4711 yes", 2, 2, do_write, NULL},
    {"resize", "PID ROWS COLS", NULL, "set the size of its terminal (start --tty)", NULL, "4711 50 120", 3, 3,
     do_resize, NULL},
    {"close", "PID", "ack text json", "close its stdin", "On a terminal the key that ends input is typed.",
     "4711", 1, 1, do_close, NULL},
    {"signal", "PID SIGNAL", NULL, "signal its process group", "SIGNAL is a name (HUP, SIGHUP) or a number.",
     "4711 HUP", 2, 2, do_signal, NULL},
    {"list", "", COMMAND_LIST_TAKES, "show the jobs: those that run, and those that ended in the last hour",
     NULL, "--format pid,state,command", 0, 0, command_print_list, NULL},
    {0},
};

static const char *const words[][2] = {
    {"exec_remote_list", "'toolbox exec_remote list'"},
    {"with stdin_open", "with --stdin"},
    {"start it with pty", "start it with --tty"},
    {0},
};
static const char *const params_said[][2] = {
    {"ack_seq", "--ack"},       {"timeout", "--timeout"},
    {"stdin_open", "--stdin"},  {"pid", "PID"},
    {"env", "--env"},           {"cwd", "--cwd"},
    {"encoding", "--encoding"}, {"rows", "ROWS"},
    {"cols", "COLS"},           {0},
};

static const struct command_set commands = {
    .packed = true,
    .about = "Programs that run in the background (jobs), with their output kept until it is acknowledged.",
    .more = "poll, wait, kill, write and close print their result as JSON. " COMMAND_TIME_HELP,
    .options = options,
    .list = list,
    .tool = &exec_remote_tool,
    .words = words,
    .params = params_said,
};

const struct applet exec_remote_applet = {
    .name = "exec_remote",
    .summary = "run programs in the background and fetch what they print",
    .commands = &commands,
};
