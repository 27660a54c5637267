/* The command line of sessions, for people and scripts. Each command is one call; see bash_session_methods.c.
 */
#include "bash_session.h"
#include "bash_session_cast.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bash_session_attach.h"
#include "bash_session_call.h"
#include "command.h"
#include "commands/exec/command_print.h"
#include "json.h"
#include "commands/server/other_builds.h"
#include "surroundings.h"
#include "words.h"

/* ---- commands ---- */

static int simple(const struct command_line *c, const char *method, struct buf *params, const char *member,
                  bool line)
{
    struct buf result BUF_AUTO = BUF_INIT;
    int status = command_call(c, method, params, &result);
    return status == EXIT_OK ? session_print(c, &result, member, line) : status;
}

static int put_program(const struct command_line *c, struct buf *params)
{
    bool given = command_value(c, "program");
    if (!given && c->n_words > 0)
        return usage_error(c->applet->name, "new takes no '%s', but for a program behind --program",
                           c->words[0]);
    if (given && c->n_words == 0)
        return usage_error(c->applet->name, "--program takes a program, as in new --program python3 -q");
    if (!given)
        return EXIT_OK;
    json_key(params, "program");
    command_put_words(c, 0, params);
    return command_check_program(c);
}

static int do_new(const struct command_line *c)
{
    static const char *const numbers[] = {"rows", "cols"};
    struct buf params BUF_AUTO = BUF_INIT;
    struct env_words env ENV_WORDS_AUTO = {0};
    int status = env_words_given(&env, c);
    buf_addc(&params, '{');
    command_put_string(c, "user", &params, "user");
    command_put_string(c, "cwd", &params, "cwd");
    command_put_string(c, "shell", &params, "shell");
    command_put_string(c, "term", &params, "term");
#ifndef TOOLBOX_GUEST
    if (command_value(c, "record"))
        put_record_path(&params, "record", command_value(c, "record"));
#endif
    for (size_t i = 0; i < 2 && status == EXIT_OK; i++)
        status = command_put_number(c, numbers[i], &params, numbers[i]);
    if (status == EXIT_OK)
        status = put_program(c, &params);
    if (status != EXIT_OK)
        return status;
    if (env.n > 0)
        surroundings_put_env(&params, false, env.list);
    return simple(c, "bash_session_new_session", &params, "session_name", true);
}

static int print_read(const struct command_line *c, const struct buf *result, long long max)
{
    struct cut cut CUT_AUTO = CUT_INIT(0, (size_t)max);
    if (max == 0 || command_value(c, "json"))
        return session_print(c, result, NULL, false);
    int status = session_print_cut(c, span_of(result), &cut);
    return status == EXIT_OK ? session_print_end(c, &cut) : status;
}

static int interact(const struct command_line *c, const char *input, size_t n)
{
    struct buf params BUF_AUTO = BUF_INIT;
    struct buf result BUF_AUTO = BUF_INIT;
    long long max = 0;
    session_call_begin(c, &params);
    int status = command_put_seconds(c, "wait", "5", true, &params, "wait_for_output");
    if (status == EXIT_OK)
        status = command_put_seconds(c, "idle", "0.5", false, &params, "idle_timeout");
    if (status == EXIT_OK)
        status = session_take_max(c, &max);
    if (status != EXIT_OK)
        return status;
    session_put_max(c, max, &params);
    if (input)
        json_member_text(&params, "input", input, n);
    status = command_call(c, "bash_session", &params, &result);
    return status == EXIT_OK ? print_read(c, &result, max) : status;
}

static int do_send(const struct command_line *c)
{
    struct buf text BUF_AUTO = BUF_INIT;
    int status = words_text(c->applet->name, c->words[1], &text);
    bool has_enter = strcmp(c->words[1], "-") == 0 && text.len > 0 && text.data[text.len - 1] == '\n';
    if (!command_value(c, "no-enter") && !has_enter)
        buf_addc(&text, '\n');
    return status == EXIT_OK ? interact(c, buf_str(&text), text.len) : status;
}

static int do_read(const struct command_line *c)
{
    return interact(c, NULL, 0);
}

static int do_interrupt(const struct command_line *c)
{
    return interact(c, "\003", 1);
}

static int do_restart(const struct command_line *c)
{
    struct buf params BUF_AUTO = BUF_INIT;
    session_call_begin(c, &params);
    json_member_bool(&params, "restart", true);
    return simple(c, "bash_session", &params, NULL, true);
}

static int do_close(const struct command_line *c)
{
    struct buf params BUF_AUTO = BUF_INIT;
    session_call_begin(c, &params);
    return simple(c, "bash_session_close", &params, NULL, true);
}

static int do_signal(const struct command_line *c)
{
    struct buf params BUF_AUTO = BUF_INIT;
    session_call_begin(c, &params);
    json_member_string(&params, "signal", c->words[1]);
    return simple(c, "bash_session_signal", &params, NULL, true);
}

static int do_resize(const struct command_line *c)
{
    struct buf params BUF_AUTO = BUF_INIT;
    session_call_begin(c, &params);
    int result = command_number(c, "ROWS", c->words[1], &params, "rows");
    if (result == EXIT_OK)
        result = command_number(c, "COLS", c->words[2], &params, "cols");
    return result == EXIT_OK ? simple(c, "bash_session_resize", &params, NULL, true) : result;
}

/* A new one for this terminal. */
static int new_for_terminal(const struct command_line *c, struct buf *name)
{
    struct buf params BUF_AUTO = BUF_INIT;
    struct buf result BUF_AUTO = BUF_INIT;
    struct span value;
    buf_addc(&params, '{');
    if (getenv("TERM"))
        json_member_string(&params, "term", getenv("TERM"));
    int status = command_call(c, "bash_session_new_session", &params, &result);
    if (status == EXIT_OK && json_member(span_of(&result), "session_name", &value, NULL))
        json_string_text(value, name);
    return status;
}

static int do_attach(const struct command_line *c)
{
    struct buf params BUF_AUTO = BUF_INIT;
    struct buf result BUF_AUTO = BUF_INIT;
    struct buf name BUF_AUTO = BUF_INIT;
    struct buf made BUF_AUTO = BUF_INIT;
    struct span socket;
    if (!isatty(STDIN_FILENO))
        return applet_failed(c->applet->name, "attach needs a terminal; use read and send without");
    int status = c->n_words > 0 ? EXIT_OK : new_for_terminal(c, &made);
    if (status != EXIT_OK)
        return status;
    char program[] = "toolbox", applet[] = "bash_session", command[] = "attach";
    char *session = c->n_words > 0 ? c->words[0] : made.data;
    char *const same[] = {program, applet, command, session, NULL};
    other_builds_hand_over(session, same, (struct span){0});
    buf_addc(&params, '{');
    json_member_string(&params, "session_name", session);
    status = command_call(c, "bash_session_attach", &params, &result);
    if (status != EXIT_OK)
        return status;
    if (json_member(span_of(&result), "socket", &socket, NULL))
        json_string_text(socket, &name);
    return attach(c->applet->name, buf_str(&name), session);
}

/* ---- the table ---- */

#ifdef TOOLBOX_GUEST
#define CAST_OPTIONS
#define CAST_NEW
#define CAST_COMMANDS
#else
#define CAST_OPTIONS                                                                                         \
    {"record", "FILE", "record what it shows and what is typed, for replay and asciinema", 0},               \
        {"stop", NULL, "end the recording", 0}, {"v3", NULL, "in version 3 of asciicast, not 2", 0},         \
        {"text", NULL, "plain text, without escape sequences", 0},                                           \
        {"speed", "FACTOR", "how much faster than it was (1)", 0},
#define CAST_NEW " record"
#define CAST_COMMANDS                                                                                        \
    {"watch",                                                                                                \
     "SESSION",                                                                                              \
     "text json",                                                                                            \
     "show what the session shows, as it does, until interrupted",                                           \
     "Nothing is taken from those who read it. With --json each event is a line: [SECONDS, \"o\", SHOWN], "  \
     "or "                                                                                                   \
     "\"i\" and what was typed.",                                                                            \
     "BashSession",                                                                                          \
     1,                                                                                                      \
     1,                                                                                                      \
     bash_session_watch,                                                                                     \
     NULL},                                                                                                  \
        {"record",                                                                                           \
         "SESSION [FILE]",                                                                                   \
         "stop v3 max json",                                                                                 \
         "record what the session shows and what is typed, and print the file's name",                       \
         "A file beside the server's sockets, where none is given. A file that has reached its --max "       \
         "becomes FILE.1. What "                                                                             \
         "is typed is left out unless the shell is at its prompt: passwords are typed elsewhere.",           \
         "BashSession /tmp/session.cast",                                                                    \
         1,                                                                                                  \
         2,                                                                                                  \
         bash_session_record,                                                                                \
         NULL},                                                                                              \
        {"replay",                                                                                           \
         "FILE",                                                                                             \
         "text speed idle json",                                                                             \
         "show a recording (asciicast 2 or 3) with its pauses, or its text at once",                         \
         NULL,                                                                                               \
         "/tmp/session.cast --speed 4 --idle 1s",                                                            \
         1,                                                                                                  \
         1,                                                                                                  \
         bash_session_replay,                                                                                \
         NULL},
#endif

static const struct command_option options[] = {
    {"user", "USER", "whose shell it is (the server's user)", 0},
    {"cwd", "DIR", "where it begins (the server's directory)", 0},
    ENV_WORDS_OPTIONS,
    {"shell", "PATH", "the shell (bash, else sh)", 0},
    {"program", NULL, "in the place of a shell, what stands behind: an interpreter and its arguments", 0},
    {"rows", "N", "height of its terminal (24)", 0},
    {"cols", "N", "width of its terminal (200)", 0},
    {"term", "NAME", "kind of its terminal, as in TERM (dumb)", 0},
    {"timeout", COMMAND_TIME, "leave off waiting then (never); the command runs on", 0},
    {"no-enter", NULL, "type no Enter behind it", 'n'},
    {"wait", COMMAND_TIME, "how long to wait for the first output, in whole seconds (5)", 0},
    {"idle", COMMAND_TIME,
     "how long output has to pause to be taken for complete (0.5); at a prompt it is at once. Of replay: the "
     "longest "
     "pause",
     0},
    {"max", "BYTES",
     "how much of the output to print (all); of more, whole lines are left out, and a line says how much. Of "
     "record: the most of a file (67108864), of which there are two at most",
     0},
    CAST_OPTIONS COMMAND_LIST_OPTIONS,
    {0},
};

#define READ_OPTIONS "wait idle max json"

static const struct command list[] = {
    {"new", "[--program PROGRAM [ARGUMENT]...]",
     "user cwd " ENV_WORDS_TAKES " shell rows cols term json program" CAST_NEW,
     "start a session and print its name", NULL, "--cwd /srv --env DEBUG=1", 0, COMMAND_PROGRAM, do_new,
     NULL},
    {"run", "SESSION COMMAND", "timeout max json",
     "run a command, print what it prints, exit with its status",
     "The status is 124 where the command still runs after the timeout (it goes on: read gets the rest, "
     "interrupt "
     "ends it), 125 where it waits for input or could not be run, and 128+N when signal N has ended it. "
     "COMMAND - is read from stdin, where nobody can see it in a process list.",
     "BashSession 'make test' --timeout 10m", 2, 2, bash_session_run, NULL},
    {"send", "SESSION TEXT", "no-enter " READ_OPTIONS, "type a line and print what comes",
     "TEXT - is read from stdin, where nobody can see it in a process list.", "BashSession yes --wait 2", 2,
     2, do_send, NULL},
    {"read", "SESSION", READ_OPTIONS, "print what has come since the last call", NULL, "BashSession --wait 5",
     1, 1, do_read, NULL},
    {"interrupt", "SESSION", READ_OPTIONS, "type Ctrl-C and print what comes", NULL, "BashSession", 1, 1,
     do_interrupt, NULL},
    {"restart", "SESSION", "json", "end everything in the session and start its shell anew", NULL,
     "BashSession", 1, 1, do_restart, NULL},
    {"close", "SESSION", "json", "end the session and everything in it", NULL, "BashSession", 1, 1, do_close,
     NULL},
    {"signal", "SESSION SIGNAL", "json", "signal the program in the foreground",
     "SIGNAL is a name (TERM, SIGTERM) or a number.", "BashSession TERM", 2, 2, do_signal, NULL},
    {"resize", "SESSION ROWS COLS", "json", "change the size of the terminal", NULL, "BashSession 50 132", 3,
     3, do_resize, NULL},
    {"attach", "[SESSION]", NULL, "connect this terminal with the session (a new one), live; Ctrl-] detaches",
     NULL, "BashSession", 0, 1, do_attach, NULL},
    CAST_COMMANDS{"list", "", COMMAND_LIST_TAKES, "show the sessions", NULL, "", 0, 0, command_print_list,
                  NULL},
    {0},
};

static const char *const words[][2] = {
    {"interrupt it with input \"\\u0003\"", "end it with interrupt"},
    {"with bash_session", "with send"},
    {"use bash_session", "use send and read"},
    {0},
};
static const char *const params_said[][2] = {
    {"wait_for_output", "--wait"},
    {"idle_timeout", "--idle"},
    {"max_output_bytes", "--max"},
    {"max_bytes", "--max"},
    {"timeout", "--timeout"},
    {"rows", "ROWS"},
    {"cols", "COLS"},
    {0},
};

static const struct command_set commands = {
    .packed = true,
    .about =
        "Shells on terminals of their own that keep their directory, variables and programs between calls.",
    .more = COMMAND_TIME_HELP,
    .options = options,
    .list = list,
    .tool = &bash_session_tool,
    .words = words,
    .params = params_said,
};

const struct applet bash_session_applet = {
    .name = "bash_session",
    .summary = "keep shells on terminals of their own",
    .commands = &commands,
};
