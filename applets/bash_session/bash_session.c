/* The command line of sessions, for people and scripts. Each command is one call; see bash_session_methods.c.
 */
#include "bash_session.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bash_session_attach.h"
#include "buf.h"
#include "exec/route.h"
#include "io.h"
#include "json.h"
#include "json_table.h"
#include "mem.h"

static const char NAME[] = "bash_session";

static const char usage[] =
    "Usage: toolbox bash_session new [--user USER] [--cwd DIR] [--env NAME=VALUE]...\n"
    "                                [--shell PATH] [--rows N] [--cols N]\n"
    "       toolbox bash_session run SESSION COMMAND [--timeout SECONDS]\n"
    "                                [--max BYTES]\n"
    "       toolbox bash_session send SESSION TEXT [-n] [--wait SECONDS]\n"
    "                                [--idle SECONDS] [--max BYTES]\n"
    "       toolbox bash_session read SESSION [--wait SECONDS] [--idle SECONDS]\n"
    "                                [--max BYTES]\n"
    "       toolbox bash_session interrupt|restart|close SESSION\n"
    "       toolbox bash_session signal SESSION SIGNAL\n"
    "       toolbox bash_session resize SESSION ROWS COLS\n"
    "       toolbox bash_session attach SESSION\n"
    "       toolbox bash_session list\n"
    "\n"
    "Shells on terminals of their own that keep their directory, variables and\n"
    "programs between calls.\n"
    "\n"
    "  new        starts a session and prints its name\n"
    "  run        runs one command, prints what it printed, exits with its status\n"
    "             (124: still running after the timeout, 125: it waits for input or\n"
    "             could not be run)\n"
    "  send       types a line (-n: without Enter) and prints what comes\n"
    "  read       prints what has come since the last call\n"
    "  interrupt  types Ctrl-C\n"
    "  restart    ends everything in the session and starts its shell anew\n"
    "  close      ends the session\n"
    "  signal     signals the program in the foreground\n"
    "  attach     connects this terminal with the session, live; Ctrl-] detaches\n"
    "  list       one line a session\n"
    "\n"
    "  --user USER, --cwd DIR, --env NAME=VALUE, --shell PATH, --rows N, --cols N\n"
    "                   what the new shell begins with (as the server has it; bash,\n"
    "                   else sh; 24 by 80)\n"
    "  --timeout SECONDS  when to leave off waiting for a command, which then runs\n"
    "                   on (never)\n"
    "  --max BYTES      how much of the output to print (10 MiB); a line in it says\n"
    "                   what was left out\n"
    "  --wait SECONDS   how long to wait for the first output, in whole seconds (5)\n"
    "  --idle SECONDS   how long output has to pause to be taken for complete (0.5);\n"
    "                   at a prompt it is at once\n"
    "  --json           the result as JSON\n"
    "  --help           this text\n";

enum {
    OPT_USER = 256,
    OPT_CWD,
    OPT_ENV,
    OPT_SHELL,
    OPT_ROWS,
    OPT_COLS,
    OPT_TIMEOUT,
    OPT_MAX,
    OPT_WAIT,
    OPT_IDLE,
    OPT_JSON
};

static const struct option options[] = {
    {"user", 1, NULL, OPT_USER},   {"cwd", 1, NULL, OPT_CWD},         {"env", 1, NULL, OPT_ENV},
    {"shell", 1, NULL, OPT_SHELL}, {"rows", 1, NULL, OPT_ROWS},       {"cols", 1, NULL, OPT_COLS},
    {"max", 1, NULL, OPT_MAX},     {"timeout", 1, NULL, OPT_TIMEOUT}, {"wait", 1, NULL, OPT_WAIT},
    {"idle", 1, NULL, OPT_IDLE},   {"json", 0, NULL, OPT_JSON},       {0},
};

/* What the command line says, as the params it will become. */
struct command_line {
    struct buf params, env;
    bool json, no_enter;
    const char *wait, *idle, *timeout, *session;
    char **words;
    int n_words;
};

/* ---- options ---- */

/* Numbers go into the params as they were written; what is none is refused here. */
static int check_number(const char *value)
{
    struct span text = {value, strlen(value)};
    if (json_check(text, NULL) < 0 || json_kind(text) != JSON_NUMBER)
        return usage_error(NAME, "'%s' is no number", value);
    return EXIT_OK;
}

static int put_number(struct command_line *c, const char *key, const char *value)
{
    if (check_number(value) != EXIT_OK)
        return EXIT_USAGE;
    json_key(&c->params, key);
    buf_adds(&c->params, value);
    return EXIT_OK;
}

static int put_env(struct command_line *c, const char *entry)
{
    const char *equals = strchr(entry, '=');
    if (!equals || equals == entry)
        return usage_error(NAME, "--env takes NAME=VALUE, not '%s'", entry);
    char *name MEM_AUTO = mem_dup(entry, (size_t)(equals - entry));
    json_member_string(&c->env, name, equals + 1);
    return EXIT_OK;
}

static int take_option(struct command_line *c, int option)
{
    switch (option) {
    case OPT_USER:
        json_member_string(&c->params, "user", optarg);
        return EXIT_OK;
    case OPT_CWD:
        json_member_string(&c->params, "cwd", optarg);
        return EXIT_OK;
    case OPT_SHELL:
        json_member_string(&c->params, "shell", optarg);
        return EXIT_OK;
    case OPT_ENV:
        return put_env(c, optarg);
    case OPT_ROWS:
        return put_number(c, "rows", optarg);
    case OPT_COLS:
        return put_number(c, "cols", optarg);
    case OPT_TIMEOUT:
        c->timeout = optarg;
        return check_number(optarg);
    case OPT_MAX:
        return put_number(c, "max_output_bytes", optarg);
    case OPT_WAIT:
        c->wait = optarg;
        return optarg[0] && !optarg[strspn(optarg, "0123456789")]
                   ? EXIT_OK
                   : usage_error(NAME, "--wait takes whole seconds, not '%s'", optarg);
    case OPT_IDLE:
        c->idle = optarg;
        return EXIT_OK;
    case OPT_JSON:
        c->json = true;
        return EXIT_OK;
    case 'n':
        c->no_enter = true;
        return EXIT_OK;
    default:
        return EXIT_USAGE; /* said */
    }
}

static int parse(struct command_line *c, int argc, char **argv)
{
    for (int option; (option = usage_option(NAME, argc, argv, ":n", options, NULL)) >= 0;) {
        int result = take_option(c, option);
        if (result != EXIT_OK)
            return result;
    }
    c->words = argv + optind;
    c->n_words = argc - optind;
    return EXIT_OK;
}

/* ---- calls ---- */

static int failed(const struct err *err)
{
    return applet_failed(NAME, "%s", err->msg);
}

/* Ends the params and calls. */
static int call(struct command_line *c, const char *method, struct buf *result, struct err *err)
{
    struct buf params BUF_AUTO = BUF_INIT;
    if (c->env.len > 0) {
        json_key(&c->params, "env");
        buf_addf(&c->params, "{%s}", c->env.data);
    }
    buf_addf(&params, "{%s}", buf_str(&c->params));
    return call_method(method, span_of(&params), result, err);
}

static int print(const void *data, size_t n)
{
    if (io_write_all(STDOUT_FILENO, data, n) == 0)
        return EXIT_OK;
    return applet_failed(NAME, "cannot write: %s", err_text(errno));
}

/* The result as JSON, or the string `member` of it (NULL: the result is the string), or nothing for null. */
static int print_result(const struct command_line *c, const struct buf *result, const char *member, bool line)
{
    struct buf text BUF_AUTO = BUF_INIT;
    struct span value = span_of(result);
    if (c->json)
        buf_add(&text, value.s, value.n);
    else if (!member || json_member(value, member, &value, NULL))
        json_string_text(value, &text);
    if (text.len > 0 && (c->json || line))
        buf_addc(&text, '\n');
    return print(text.data, text.len);
}

static int simple(struct command_line *c, const char *method, const char *member, bool line)
{
    struct buf result BUF_AUTO = BUF_INIT;
    struct err err;
    return call(c, method, &result, &err) < 0 ? failed(&err) : print_result(c, &result, member, line);
}

/* ---- commands: each gets its words, the session's name already in the params ---- */

static int do_new(struct command_line *c)
{
    return simple(c, "bash_session_new_session", "session_name", true);
}

static int interact(struct command_line *c, const char *input, size_t n)
{
    int result = put_number(c, "wait_for_output", c->wait ? c->wait : "5");
    if (result == EXIT_OK)
        result = put_number(c, "idle_timeout", c->idle ? c->idle : "0.5");
    if (result != EXIT_OK)
        return result;
    if (input)
        json_member_text(&c->params, "input", input, n);
    return simple(c, "bash_session", NULL, false);
}

static int do_send(struct command_line *c)
{
    struct buf text BUF_AUTO = BUF_INIT;
    buf_adds(&text, c->words[0]);
    if (!c->no_enter)
        buf_addc(&text, '\n');
    return interact(c, text.data, text.len);
}

static int do_read(struct command_line *c)
{
    return interact(c, NULL, 0);
}

static int do_interrupt(struct command_line *c)
{
    return interact(c, "\003", 1);
}

static int do_restart(struct command_line *c)
{
    json_member_bool(&c->params, "restart", true);
    return simple(c, "bash_session", NULL, true);
}

static int do_close(struct command_line *c)
{
    return simple(c, "bash_session_close", NULL, true);
}

static int do_signal(struct command_line *c)
{
    json_member_string(&c->params, "signal", c->words[0]);
    return simple(c, "bash_session_signal", NULL, true);
}

static int do_resize(struct command_line *c)
{
    int result = put_number(c, "rows", c->words[0]);
    if (result == EXIT_OK)
        result = put_number(c, "cols", c->words[1]);
    return result == EXIT_OK ? simple(c, "bash_session_resize", NULL, true) : result;
}

enum { EXIT_STILL_RUNNING = 124, EXIT_NOT_RUN = 125 }; /* as timeout(1) has them */

static bool is_state(const struct buf *result, const char *state)
{
    struct span value;
    struct buf text BUF_AUTO = BUF_INIT;
    return json_member(span_of(result), "state", &value, NULL) && json_string_text(value, &text) &&
           strcmp(text.data, state) == 0;
}

/* The command's own status, as a shell tells it: 128 + N for signal N. */
static int status_of(const struct buf *result)
{
    struct span code;
    json_member(span_of(result), "exit_code", &code, NULL);
    if (is_state(result, "timeout"))
        return EXIT_STILL_RUNNING;
    if (is_state(result, "awaiting_input"))
        return EXIT_NOT_RUN;
    long status = strtol(code.s, NULL, 10);
    return (int)(status < 0 ? 128 - status : status);
}

/* Output is printed as it comes: the run is answered after a moment, and waited for again. */
#define STEP_MIN_S 0.1
#define STEP_MAX_S 0.5

static int start_step(struct command_line *c, const char *command, double timeout_s, struct buf *result,
                      struct err *err)
{
    struct command_line step = {.params = BUF_INIT, .env = BUF_INIT};
    buf_add(&step.params, c->params.data, c->params.len);
    if (command)
        json_member_string(&step.params, "command", command);
    json_key(&step.params, "timeout");
    buf_addf(&step.params, "%.3f", timeout_s);
    int failed = call(&step, "bash_session_run", result, err);
    buf_release(&step.params);
    return failed;
}

static int stream(struct command_line *c, double timeout_s)
{
    double step = STEP_MIN_S, left = timeout_s;
    struct err err;
    for (const char *command = c->words[0];; command = NULL) {
        struct buf result BUF_AUTO = BUF_INIT;
        struct span output;
        step = timeout_s >= 0 && step > left ? left : step;
        if (start_step(c, command, step, &result, &err) < 0) {
            failed(&err);
            return EXIT_NOT_RUN;
        }
        int printed = print_result(c, &result, "output", false);
        if (printed != EXIT_OK)
            return printed;
        int status = status_of(&result);
        left -= step;
        if (is_state(&result, "awaiting_input"))
            applet_failed(NAME, "the command waits for input; give it with send");
        if (!is_state(&result, "timeout"))
            return status;
        if (timeout_s >= 0 && left <= 0) {
            applet_failed(NAME, "the command is still running; read gets what it prints, interrupt ends it");
            return EXIT_STILL_RUNNING;
        }
        json_member(span_of(&result), "output", &output, NULL);
        bool quiet = output.n <= 2; /* its quotes */
        step = !quiet ? STEP_MIN_S : step * 2 < STEP_MAX_S ? step * 2 : STEP_MAX_S;
    }
}

static int do_run(struct command_line *c)
{
    struct buf result BUF_AUTO = BUF_INIT;
    struct err err;
    if (!c->json)
        return stream(c, c->timeout ? strtod(c->timeout, NULL) : -1);
    json_member_string(&c->params, "command", c->words[0]);
    if (c->timeout && put_number(c, "timeout", c->timeout) != EXIT_OK)
        return EXIT_USAGE;
    if (call(c, "bash_session_run", &result, &err) < 0) {
        failed(&err);
        return EXIT_NOT_RUN;
    }
    int printed = print_result(c, &result, NULL, true);
    return printed == EXIT_OK ? status_of(&result) : printed;
}

static int do_attach(struct command_line *c)
{
    struct buf result BUF_AUTO = BUF_INIT;
    struct buf name BUF_AUTO = BUF_INIT;
    struct err err;
    struct span socket;
    if (!isatty(STDIN_FILENO))
        return applet_failed(NAME, "attach needs a terminal; use read and send without");
    if (call(c, "bash_session_attach", &result, &err) < 0)
        return failed(&err);
    if (json_member(span_of(&result), "socket", &socket, NULL))
        json_string_text(socket, &name);
    return attach(NAME, buf_str(&name), c->session);
}

/* ---- list ---- */

static int do_list(struct command_line *c)
{
    struct buf result BUF_AUTO = BUF_INIT;
    struct err err;
    if (call(c, "bash_session_list", &result, &err) < 0)
        return failed(&err);
    if (c->json)
        return print_result(c, &result, NULL, true);
    struct buf text BUF_AUTO = BUF_INIT;
    json_table(&text, span_of(&result), bash_session_tool.list.columns);
    return print(text.data, text.len);
}

/* ---- dispatch ---- */

static const struct {
    const char *name;
    bool of_session; /* its first word is a session's name */
    int n_words;     /* behind that */
    int (*run)(struct command_line *c);
} commands[] = {
    {"new", false, 0, do_new},
    {"run", true, 1, do_run},
    {"send", true, 1, do_send},
    {"read", true, 0, do_read},
    {"interrupt", true, 0, do_interrupt},
    {"restart", true, 0, do_restart},
    {"close", true, 0, do_close},
    {"signal", true, 1, do_signal},
    {"resize", true, 2, do_resize},
    {"attach", true, 0, do_attach},
    {"list", false, 0, do_list},
};
enum { N_COMMANDS = sizeof commands / sizeof *commands };

static int run_command(size_t i, int argc, char **argv)
{
    struct command_line c = {.params = BUF_INIT, .env = BUF_INIT};
    int result = parse(&c, argc, argv);
    int wanted = commands[i].n_words + commands[i].of_session;
    if (result == EXIT_OK && c.n_words != wanted)
        result = usage_error(NAME, "%s takes %d argument%s, not %d", commands[i].name, wanted,
                             wanted == 1 ? "" : "s", c.n_words);
    if (result == EXIT_OK && commands[i].of_session) {
        c.session = *c.words++;
        json_member_string(&c.params, "session_name", c.session);
    }
    if (result == EXIT_OK)
        result = commands[i].run(&c);
    buf_release(&c.params);
    buf_release(&c.env);
    return result;
}

static int bash_session_main(int argc, char **argv)
{
    const char *names[N_COMMANDS + 1] = {0};
    if (argc < 2)
        return usage_error(NAME, "a command is missing");
    for (size_t i = 0; i < N_COMMANDS; i++) {
        names[i] = commands[i].name;
        if (strcmp(argv[1], commands[i].name) == 0)
            return run_command(i, argc - 1, argv + 1);
    }
    return usage_unknown(NAME, "command", argv[1], names);
}

const struct applet bash_session_applet = {
    .name = NAME,
    .summary = "keep shells on terminals of their own",
    .usage = usage,
    .run = bash_session_main,
};
