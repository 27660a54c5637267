#include "exec_remote_params.h"

#include <stddef.h>
#include <string.h>

#define START(member) offsetof(struct start_params, member)
#define JOB(member) offsetof(struct job_params, member)
#define SECONDS_MAX 1e9

static const struct param start_list[] = {
    {.key = "command", .type = PARAM_NAME, .offset = START(command)},
    {.key = "argv", .type = PARAM_NAMES, .offset = START(argv)},
    {.key = "input", .type = PARAM_TEXT, .offset = START(input)},
    {.key = "stdin_open", .type = PARAM_BOOL, .offset = START(stdin_open)},
    {.key = "env", .type = PARAM_ENV, .offset = START(env)},
    {.key = "cwd", .type = PARAM_NAME, .offset = START(cwd)},
    {.key = "user", .type = PARAM_USER, .offset = START(user)},
    {.key = "timeout", .type = PARAM_NUMBER, .offset = START(timeout_s), .max = SECONDS_MAX},
    {.key = "umask", .type = PARAM_INT, .offset = START(umask), .max = 0777},
    {.key = "encoding", .type = PARAM_NAME, .offset = START(encoding)},
};
const struct params_table job_start_params = PARAMS_TABLE(start_list);

/* A pid that can't be is no fault of the form: it is that of no job. */
#define PID                                                                                                  \
    {                                                                                                        \
        .key = "pid", .type = PARAM_INT, .offset = JOB(pid), .required = true                                \
    }
#define ACK                                                                                                  \
    {                                                                                                        \
        .key = "ack_seq", .type = PARAM_INT, .offset = JOB(ack_seq), .required = true                        \
    }

static const struct param ack_list[] = {PID, ACK};
const struct params_table job_ack_params = PARAMS_TABLE(ack_list);

static const struct param wait_list[] = {
    PID,
    ACK,
    {.key = "timeout", .type = PARAM_NUMBER, .offset = JOB(timeout_s), .max = SECONDS_MAX},
};
const struct params_table job_wait_params = PARAMS_TABLE(wait_list);

static const struct param write_list[] = {
    PID,
    ACK,
    {.key = "data", .type = PARAM_TEXT, .offset = JOB(data), .required = true},
};
const struct params_table job_write_params = PARAMS_TABLE(write_list);

static const struct param signal_list[] = {
    PID,
    {.key = "signal", .type = PARAM_NAME, .offset = JOB(signal), .required = true},
};
const struct params_table job_signal_params = PARAMS_TABLE(signal_list);

static const struct param pid_list[] = {PID};
const struct params_table job_hold_params = PARAMS_TABLE(pid_list);
const struct params_table job_pid_params = {.list = pid_list, .n = 1, .ignore_unknown = true};

bool job_start_is_latin1(const struct start_params *p)
{
    return p->encoding.s && strcmp(p->encoding.s, "latin-1") == 0;
}

int job_start_check(const struct start_params *p, struct err *err)
{
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
