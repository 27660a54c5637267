/* The command line of jobs, for people and scripts. Each command but `run` is one call. */
#include "exec_remote.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "buf.h"
#include "exec/route.h"
#include "io.h"
#include "json.h"
#include "json_table.h"
#include "mem.h"
#include "surroundings.h"
#include "utf8.h"

static const char NAME[] = "exec_remote";

static const char usage[] =
    "Usage: toolbox exec_remote run [START OPTIONS] [--] PROGRAM [ARGUMENT]...\n"
    "       toolbox exec_remote start [START OPTIONS] [--input TEXT] [--stdin]\n"
    "                           [--json] [--] PROGRAM [ARGUMENT]...\n"
    "       toolbox exec_remote poll|kill|close PID [--ack SEQ]\n"
    "       toolbox exec_remote wait PID [--ack SEQ] [--timeout SECONDS]\n"
    "       toolbox exec_remote write PID TEXT [--ack SEQ]\n"
    "       toolbox exec_remote signal PID SIGNAL\n"
    "       toolbox exec_remote list [--json]\n"
    "\n"
    "Programs that run in the background (jobs), with their output kept until it is\n"
    "acknowledged.\n"
    "\n"
    "  run     runs a program as if it were called directly: stdin, stdout, stderr,\n"
    "          signals, umask and exit status are its own (128+N: signal N, 127: it\n"
    "          was not found, 126: it can't be run, 125: anything else is in the\n"
    "          way), and so are directory and environment, unless it runs as another\n"
    "          USER. Its stdin is a pipe, also where ours is a terminal. It ends with\n"
    "          us, also where we are killed\n"
    "  start   starts a job and prints its pid\n"
    "  poll    what it has printed since what was acknowledged, and its state\n"
    "  wait    as poll, but not before there is something to say\n"
    "  kill    TERM, after 5 seconds KILL, to everything that belongs to it\n"
    "  write   to its stdin (start --stdin)\n"
    "  close   its stdin\n"
    "  signal  its process group\n"
    "  list    one line a job: those that run, and those that ended less than an hour\n"
    "          ago\n"
    "\n"
    "  -c               what follows is one command for /bin/sh\n"
    "  --user USER, --cwd DIR, --env NAME=VALUE\n"
    "  --timeout SECONDS  the job is killed then, as by kill: run's status is 143 at\n"
    "                   TERM's (wait: only the wait ends)\n"
    "  --ack SEQ        the last answer that was received (0)\n"
    "  --json           the result of start and list as JSON; run has none\n"
    "  --help           this text\n"
    "\n"
    "poll, wait, kill, write and close print their result as JSON.\n";

enum { OPT_USER = 256, OPT_CWD, OPT_ENV, OPT_TIMEOUT, OPT_ACK, OPT_INPUT, OPT_STDIN, OPT_JSON };

static const struct option options[] = {
    {"user", 1, NULL, OPT_USER},       {"cwd", 1, NULL, OPT_CWD},   {"env", 1, NULL, OPT_ENV},
    {"timeout", 1, NULL, OPT_TIMEOUT}, {"ack", 1, NULL, OPT_ACK},   {"input", 1, NULL, OPT_INPUT},
    {"stdin", 0, NULL, OPT_STDIN},     {"json", 0, NULL, OPT_JSON}, {0},
};

/* What the command line says, as the params it will become. */
struct command_line {
    struct buf params;
    struct env_words env;
    const char *ack;
    bool by_shell, as_json, has_user, has_cwd;
    char **words;
    int n_words;
};

/* ---- options ---- */

static int put_number(struct command_line *c, const char *key, const char *value)
{
    struct span text = {value, strlen(value)};
    if (json_check(text, NULL) < 0 || json_kind(text) != JSON_NUMBER)
        return usage_error(NAME, "'%s' is no number", value);
    json_key(&c->params, key);
    buf_adds(&c->params, value);
    return EXIT_OK;
}

static int take_option(struct command_line *c, int option)
{
    switch (option) {
    case OPT_USER:
        c->has_user = true;
        json_member_string(&c->params, "user", optarg);
        return EXIT_OK;
    case OPT_CWD:
        c->has_cwd = true;
        json_member_string(&c->params, "cwd", optarg);
        return EXIT_OK;
    case OPT_ENV:
        return env_words_add(&c->env, NAME, optarg);
    case OPT_TIMEOUT:
        return put_number(c, "timeout", optarg);
    case OPT_ACK:
        c->ack = optarg;
        return EXIT_OK;
    case OPT_INPUT:
        json_member_string(&c->params, "input", optarg);
        return EXIT_OK;
    case OPT_STDIN:
        json_member_bool(&c->params, "stdin_open", true);
        return EXIT_OK;
    case OPT_JSON:
        c->as_json = true;
        return EXIT_OK;
    case 'c':
        c->by_shell = true;
        return EXIT_OK;
    default:
        return EXIT_USAGE; /* said */
    }
}

/* `in_order`: options end at the first word, which begins a program's own. */
static int parse(struct command_line *c, int argc, char **argv, bool in_order)
{
    const char *letters = in_order ? "+:c" : ":c";
    for (int option; (option = usage_option(NAME, argc, argv, letters, options, NULL)) >= 0;) {
        int result = take_option(c, option);
        if (result != EXIT_OK)
            return result;
    }
    c->words = argv + optind;
    c->n_words = argc - optind;
    return EXIT_OK;
}

/* ---- calls ---- */

static int print_line(struct buf *text)
{
    buf_addc(text, '\n');
    if (io_write_all(STDOUT_FILENO, text->data, text->len) == 0)
        return EXIT_OK;
    return applet_failed(NAME, "cannot write: %s", err_text(errno));
}

static int call(const char *method, const struct buf *params, struct buf *result)
{
    struct err err;
    if (call_method(method, span_of(params), result, &err) == 0)
        return EXIT_OK;
    return applet_failed(NAME, "%s", err.msg);
}

/* A call whose result is printed as it is; what is null is nothing to print. */
static int simple(struct command_line *c, const char *method)
{
    struct buf result BUF_AUTO = BUF_INIT;
    buf_addc(&c->params, '}');
    int status = call(method, &c->params, &result);
    return status != EXIT_OK || span_is(span_of(&result), "null") ? status : print_line(&result);
}

/* ---- commands ---- */

static int put_program(struct command_line *c)
{
    if (c->n_words == 0)
        return usage_error(NAME, "a program is missing");
    for (int i = 0; i < c->n_words; i++)
        if (!utf8_is_valid(c->words[i], strlen(c->words[i])))
            return usage_error(NAME, "word %d of the program is not UTF-8, which no request can hold", i + 1);
    if (c->by_shell && c->n_words > 1)
        return usage_error(NAME, "-c takes one command, not %d words", c->n_words);
    if (c->by_shell) {
        json_member_string(&c->params, "command", c->words[0]);
    } else {
        json_key(&c->params, "argv");
        for (int i = 0; i < c->n_words; i++) {
            buf_addc(&c->params, i == 0 ? '[' : ',');
            json_puts(&c->params, c->words[i]);
        }
        buf_addc(&c->params, ']');
    }
    return EXIT_OK;
}

static void put_umask(struct buf *params)
{
    mode_t mask = umask(0);
    umask(mask);
    json_member_int(params, "umask", (long long)mask);
}

/* As if it were started here; another user has his own surroundings. */
static int do_run(struct command_line *c)
{
    if (c->as_json)
        return usage_error(NAME, "run prints what the program prints; --json is for start and list");
    int result = put_program(c);
    put_umask(&c->params);
    surroundings_put_env(&c->params, !c->has_user, c->env.list);
    if (!c->has_user && !c->has_cwd)
        surroundings_put_cwd(&c->params);
    return result == EXIT_OK ? exec_remote_run(&c->params, c->by_shell ? "/bin/sh" : c->words[0]) : result;
}

static int do_start(struct command_line *c)
{
    struct buf result BUF_AUTO = BUF_INIT;
    struct buf line BUF_AUTO = BUF_INIT;
    struct span pid;
    int status = put_program(c);
    /* beside the server's own */
    surroundings_put_env(&c->params, false, c->env.list);
    buf_addc(&c->params, '}');
    if (status == EXIT_OK)
        status = call("exec_remote_start", &c->params, &result);
    if (status != EXIT_OK || !json_member(span_of(&result), "pid", &pid, NULL))
        return status;
    if (c->as_json)
        return print_line(&result);
    buf_add(&line, pid.s, pid.n);
    return print_line(&line);
}

static int of_job(struct command_line *c, const char *method, int n_more)
{
    if (c->n_words != 1 + n_more)
        return usage_error(NAME, "takes %d argument%s, not %d", 1 + n_more, n_more ? "s" : "", c->n_words);
    int result = put_number(c, "pid", c->words[0]);
    if (result == EXIT_OK && strcmp(method, "exec_remote_signal") != 0)
        result = put_number(c, "ack_seq", c->ack ? c->ack : "0");
    return result == EXIT_OK ? simple(c, method) : result;
}

static int do_poll(struct command_line *c)
{
    return of_job(c, "exec_remote_poll", 0);
}

static int do_wait(struct command_line *c)
{
    return of_job(c, "exec_remote_wait", 0);
}

static int do_kill(struct command_line *c)
{
    return of_job(c, "exec_remote_kill", 0);
}

static int do_close(struct command_line *c)
{
    return of_job(c, "exec_remote_close_stdin", 0);
}

static int do_write(struct command_line *c)
{
    if (c->n_words > 1)
        json_member_string(&c->params, "data", c->words[1]);
    return of_job(c, "exec_remote_write_stdin", 1);
}

static int do_signal(struct command_line *c)
{
    if (c->n_words > 1)
        json_member_string(&c->params, "signal", c->words[1]);
    return of_job(c, "exec_remote_signal", 1);
}

/* ---- list ---- */

static int do_list(struct command_line *c)
{
    struct buf result BUF_AUTO = BUF_INIT;
    struct buf text BUF_AUTO = BUF_INIT;
    buf_addc(&c->params, '}');
    if (c->n_words > 0)
        return usage_error(NAME, "list takes no arguments");
    int status = call("exec_remote_list", &c->params, &result);
    if (status != EXIT_OK || c->as_json)
        return status == EXIT_OK ? print_line(&result) : status;
    json_table(&text, span_of(&result), exec_remote_tool.list.columns);
    buf_truncate(&text, text.len - 1);
    return print_line(&text);
}

/* ---- dispatch ---- */

static const struct {
    const char *name;
    bool program; /* its words are a program and its arguments */
    int (*run)(struct command_line *c);
} commands[] = {
    {"run", true, do_run},      {"start", true, do_start},    {"poll", false, do_poll},
    {"wait", false, do_wait},   {"kill", false, do_kill},     {"write", false, do_write},
    {"close", false, do_close}, {"signal", false, do_signal}, {"list", false, do_list},
};
enum { N_COMMANDS = sizeof commands / sizeof *commands };

static int run_command(size_t i, int argc, char **argv)
{
    struct command_line c = {.params = BUF_INIT};
    buf_addc(&c.params, '{');
    int result = parse(&c, argc, argv, commands[i].program);
    if (result == EXIT_OK)
        result = commands[i].run(&c);
    buf_release(&c.params);
    free(c.env.list);
    return result;
}

static int exec_remote_main(int argc, char **argv)
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

const struct applet exec_remote_applet = {
    .name = NAME,
    .summary = "run programs in the background and fetch what they print",
    .usage = usage,
    .run = exec_remote_main,
};
