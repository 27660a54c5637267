#include "exec_remote_params.h"

#include <limits.h>
#include <stddef.h>
#include <string.h>

#define START(member) offsetof(struct start_params, member)
#define JOB(member) offsetof(struct job_params, member)
#define SECONDS_MAX 1e9

#define SIZE(key_, offset_, required_, about_, otherwise_)                                                   \
    {                                                                                                        \
        .key = (key_), .type = PARAM_INT, .offset = (offset_), .required = (required_), .min = 1,            \
        .max = SHRT_MAX, PARAM_DOC(about_, otherwise_)                                                       \
    }

static const struct param pty_list[] = {
    SIZE("rows", offsetof(struct pty_params, rows), false, "Height", "24"),
    SIZE("cols", offsetof(struct pty_params, cols), false, "Width", "80"),
};
static const struct params_table pty_table = PARAMS_TABLE(pty_list);

static const struct param start_list[] = {
    {.key = "command",
     .type = PARAM_NAME,
     .offset = START(command),
     PARAM_DOC("A command for /bin/sh -c; or argv", NULL)},
    {.key = "argv",
     .type = PARAM_NAMES,
     .offset = START(argv),
     PARAM_DOC("Program and arguments, run without a shell; or command", NULL)},
    {.key = "input", .type = PARAM_TEXT, .offset = START(input), PARAM_DOC("Text for its stdin", "none")},
    {.key = "stdin_open",
     .type = PARAM_BOOL,
     .offset = START(stdin_open),
     PARAM_DOC("Keep stdin open for exec_remote_write_stdin", "false")},
    {.key = "env",
     .type = PARAM_ENV,
     .offset = START(env),
     PARAM_DOC("Variables to add to the server's", NULL)},
    {.key = "cwd",
     .type = PARAM_NAME,
     .offset = START(cwd),
     PARAM_DOC("Directory to begin in", "the server's")},
    {.key = "user",
     .type = PARAM_USER,
     .offset = START(user),
     PARAM_DOC("Whom it runs as; another user than its own takes a server of root", "the server's user")},
    {.key = "timeout",
     .type = PARAM_NUMBER,
     .offset = START(timeout_s),
     .max = SECONDS_MAX,
     PARAM_DOC("Seconds after which it is killed", "never")},
    {.key = "umask",
     .type = PARAM_INT,
     .offset = START(umask),
     .max = 0777,
     PARAM_DOC("Its umask, as a decimal number", "the server's")},
    {.key = "encoding",
     .type = PARAM_NAME,
     .offset = START(encoding),
     PARAM_DOC("utf-8, or latin-1: each byte is a character", "utf-8")},
    {.key = "pty",
     .type = PARAM_SWITCH,
     .offset = START(pty),
     .table = &pty_table,
     PARAM_DOC("Run it on a terminal, whose other end is stdin and stdout", "false")},
    {.key = "ends_with",
     .type = PARAM_INT,
     .offset = START(ends_with),
     .min = 1,
     .max = INT_MAX,
     PARAM_DOC("A process with whose end it ends, however that comes", "none")},
    WALLS_PARAMS(START(walls)) SURROUNDINGS_PARAM(START(surroundings)),
};
const struct params_table job_start_params = PARAMS_TABLE(start_list);

/* A pid that can't be is no fault of the form: it is that of no job. */
#define PID                                                                                                  \
    {                                                                                                        \
        .key = "pid", .type = PARAM_INT, .offset = JOB(pid), .required = true,                               \
        PARAM_DOC("The job, by the number that exec_remote_start gave", NULL)                                \
    }
#define ACK                                                                                                  \
    {                                                                                                        \
        .key = "ack_seq", .type = PARAM_INT, .offset = JOB(ack_seq), .required = true,                       \
        PARAM_DOC("The last seq that was received; 0: none", NULL)                                           \
    }

static const struct param ack_list[] = {PID, ACK};
const struct params_table job_ack_params = PARAMS_TABLE(ack_list);

static const struct param wait_list[] = {
    PID,
    ACK,
    {.key = "timeout",
     .type = PARAM_NUMBER,
     .offset = JOB(timeout_s),
     .max = SECONDS_MAX,
     PARAM_DOC("Seconds to wait", "no limit")},
};
const struct params_table job_wait_params = PARAMS_TABLE(wait_list);

static const struct param follow_list[] = {
    PID,
    {.key = "cursor",
     .type = PARAM_INT,
     .offset = JOB(ack_seq),
     PARAM_DOC("That of the last event that was received", "none was")},
};
const struct params_table job_follow_params = PARAMS_TABLE(follow_list);

static const struct param write_list[] = {
    PID,
    ACK,
    {.key = "data",
     .type = PARAM_TEXT,
     .offset = JOB(data),
     .required = true,
     PARAM_DOC("What to write", NULL)},
};
const struct params_table job_write_params = PARAMS_TABLE(write_list);

static const struct param signal_list[] = {
    PID,
    {.key = "signal",
     .type = PARAM_NAME,
     .offset = JOB(signal),
     .required = true,
     PARAM_DOC("Name or number of a signal: INT, SIGTERM, 15", NULL)},
};
const struct params_table job_signal_params = PARAMS_TABLE(signal_list);

static const struct param resize_list[] = {
    PID,
    SIZE("rows", JOB(rows), true, "Height of the terminal", NULL),
    SIZE("cols", JOB(cols), true, "Width of the terminal", NULL),
};
const struct params_table job_resize_params = PARAMS_TABLE(resize_list);

static const struct param pid_list[] = {PID};
const struct params_table job_hold_params = PARAMS_TABLE(pid_list);
const struct params_table job_pid_params = {.list = pid_list, .n = 1, .ignore_unknown = true};

bool job_start_is_latin1(const struct start_params *p)
{
    return p->encoding.s && strcmp(p->encoding.s, "latin-1") == 0;
}

int job_start_check(const void *params, struct err *err)
{
    const struct start_params *p = params;
    if (p->command.s && p->argv.list)
        return err_set(err, ERR_PARAMS, "Invalid parameters: argv: cannot be combined with command");
    if (!p->command.s && !p->argv.list)
        return err_set(err, ERR_PARAMS, "Invalid parameters: command: is missing (or argv)");
    if (p->argv.list && p->argv.n == 0)
        return err_set(err, ERR_PARAMS, "Invalid parameters: argv: names no program");
    if (p->encoding.s && !job_start_is_latin1(p) && strcmp(p->encoding.s, "utf-8") != 0)
        return err_set(err, ERR_PARAMS, "Invalid parameters: encoding: must be \"utf-8\" or \"latin-1\"");
    return 0;
}
