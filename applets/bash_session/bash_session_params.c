#include "bash_session_params.h"

#include <stddef.h>

#include "bash_session_types.h"

#define AT(struct_name, member) offsetof(struct struct_name, member)

static const struct param new_session_list[] = {
    {.key = "user", .type = PARAM_USER, .offset = AT(new_session_params, user)},
    {.key = "cwd", .type = PARAM_NAME, .offset = AT(new_session_params, cwd)},
    {.key = "shell", .type = PARAM_NAME, .offset = AT(new_session_params, shell)},
    {.key = "env", .type = PARAM_ENV, .offset = AT(new_session_params, env)},
    {.key = "rows", .type = PARAM_INT, .offset = AT(new_session_params, rows), .min = 1, .max = 32767},
    {.key = "cols", .type = PARAM_INT, .offset = AT(new_session_params, cols), .min = 1, .max = 32767},
};
const struct params_table session_new_params = PARAMS_TABLE(new_session_list);

#define SECONDS_MAX 1e9

static const struct param interact_list[] = {
    {.key = "session_name",
     .type = PARAM_NAME,
     .offset = AT(interact_params, session_name),
     .required = true},
    {.key = "input", .type = PARAM_TEXT, .offset = AT(interact_params, input)},
    {.key = "wait_for_output",
     .type = PARAM_INT,
     .offset = AT(interact_params, wait_for_output_s),
     .max = SECONDS_MAX},
    {.key = "idle_timeout",
     .type = PARAM_NUMBER,
     .offset = AT(interact_params, idle_timeout_s),
     .max = SECONDS_MAX},
    {.key = "max_output_bytes", .type = PARAM_INT, .offset = AT(interact_params, max_output_bytes)},
    {.key = "restart", .type = PARAM_BOOL, .offset = AT(interact_params, restart)},
};
const struct params_table session_interact_params = PARAMS_TABLE(interact_list);

static const struct param run_list[] = {
    {.key = "session_name", .type = PARAM_NAME, .offset = AT(run_params, session_name), .required = true},
    {.key = "command", .type = PARAM_NAME, .offset = AT(run_params, command)},
    {.key = "timeout", .type = PARAM_NUMBER, .offset = AT(run_params, timeout_s), .max = SECONDS_MAX},
    {.key = "max_output_bytes", .type = PARAM_INT, .offset = AT(run_params, max_output_bytes)},
    {.key = "interrupt_abandoned", .type = PARAM_BOOL, .offset = AT(run_params, interrupt_abandoned)},
};
const struct params_table session_run_params = PARAMS_TABLE(run_list);

static const struct param resize_list[] = {
    {.key = "session_name", .type = PARAM_NAME, .offset = AT(resize_params, session_name), .required = true},
    {.key = "rows",
     .type = PARAM_INT,
     .offset = AT(resize_params, rows),
     .required = true,
     .min = 1,
     .max = 32767},
    {.key = "cols",
     .type = PARAM_INT,
     .offset = AT(resize_params, cols),
     .required = true,
     .min = 1,
     .max = 32767},
};
const struct params_table session_resize_params = PARAMS_TABLE(resize_list);

static const struct param signal_list[] = {
    {.key = "session_name", .type = PARAM_NAME, .offset = AT(signal_params, session_name), .required = true},
    {.key = "signal", .type = PARAM_NAME, .offset = AT(signal_params, signal), .required = true},
};
const struct params_table session_signal_params = PARAMS_TABLE(signal_list);

static const struct param close_list[] = {
    {.key = "session_name", .type = PARAM_NAME, .offset = AT(signal_params, session_name), .required = true},
};
const struct params_table session_name_params = PARAMS_TABLE(close_list);

const struct params_table session_no_params = {0};

/* Unpacks, or answers with what is wrong. */
bool session_unpack(struct rpc_call *call, const struct params_table *table, struct span params, void *into)
{
    struct err err;
    if (params_unpack(table, params, into, &err) == 0)
        return true;
    rpc_fail(call, &err);
    return false;
}
