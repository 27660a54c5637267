#include "bash_session_params.h"

#include <limits.h>
#include <stddef.h>

#include "bash_session_types.h"

#define AT(struct_name, member) offsetof(struct struct_name, member)

static const struct param new_session_list[] = {
    {.key = "user",
     .type = PARAM_USER,
     .offset = AT(new_session_params, user),
     PARAM_DOC("Whom it runs as; another user than its own takes a server of root", "the server's user")},
    {.key = "cwd",
     .type = PARAM_NAME,
     .offset = AT(new_session_params, cwd),
     PARAM_DOC("Directory to begin in", "the server's")},
    {.key = "shell",
     .type = PARAM_NAME,
     .offset = AT(new_session_params, shell),
     PARAM_DOC("Path of the shell", "bash, else sh")},
    {.key = "program",
     .type = PARAM_NAMES,
     .offset = AT(new_session_params, program),
     PARAM_DOC("In the place of a shell: a program, such as an interpreter, and its arguments", "none")},
    {.key = "env",
     .type = PARAM_ENV,
     .offset = AT(new_session_params, env),
     PARAM_DOC("Variables to add to the server's", NULL)},
    {.key = "rows",
     .type = PARAM_INT,
     .offset = AT(new_session_params, rows),
     .min = 1,
     .max = 32767,
     PARAM_DOC("Height of the terminal", "24")},
    {.key = "cols",
     .type = PARAM_INT,
     .offset = AT(new_session_params, cols),
     .min = 1,
     .max = 32767,
     PARAM_DOC("Width of the terminal", "200")},
    {.key = "term",
     .type = PARAM_NAME,
     .offset = AT(new_session_params, term),
     PARAM_DOC("Kind of the terminal: TERM of the shell", "that of env, else dumb")},
    {.key = "ends_with",
     .type = PARAM_INT,
     .offset = AT(new_session_params, ends_with),
     .min = 1,
     .max = INT_MAX,
     PARAM_DOC("A process with whose end it ends, however that comes", "none")},
    SURROUNDINGS_PARAM(AT(new_session_params, surroundings)),
};
const struct params_table session_new_params = PARAMS_TABLE(new_session_list);

#define SECONDS_MAX 1e9

static const struct param interact_list[] = {
    {.key = "session_name",
     .type = PARAM_NAME,
     .offset = AT(interact_params, session_name),
     .required = true,
     PARAM_DOC("The session, as it was named when it began", NULL)},
    {.key = "input",
     .type = PARAM_TEXT,
     .offset = AT(interact_params, input),
     PARAM_DOC("What to type", "nothing")},
    {.key = "wait_for_output",
     .type = PARAM_INT,
     .offset = AT(interact_params, wait_for_output_s),
     .max = SECONDS_MAX,
     PARAM_DOC("Seconds to wait for the first output; needed unless restart is true", NULL)},
    {.key = "idle_timeout",
     .type = PARAM_NUMBER,
     .offset = AT(interact_params, idle_timeout_s),
     .max = SECONDS_MAX,
     PARAM_DOC("Seconds that output has to pause to be taken for complete; needed unless restart is true",
               NULL)},
    {.key = "max_output_bytes",
     .type = PARAM_INT,
     .offset = AT(interact_params, max_output_bytes),
     PARAM_DOC("Most bytes of output; 0 and less mean the default", "10485760")},
    {.key = "restart",
     .type = PARAM_BOOL,
     .offset = AT(interact_params, restart),
     PARAM_DOC("End everything in the session and start its shell anew", "false")},
};
const struct params_table session_interact_params = PARAMS_TABLE(interact_list);

static const struct param run_list[] = {
    {.key = "session_name",
     .type = PARAM_NAME,
     .offset = AT(run_params, session_name),
     .required = true,
     PARAM_DOC("The session, as it was named when it began", NULL)},
    {.key = "command",
     .type = PARAM_NAME,
     .offset = AT(run_params, command),
     PARAM_DOC("A command line, or several lines", "the one that runs is waited for")},
    {.key = "timeout",
     .type = PARAM_NUMBER,
     .offset = AT(run_params, timeout_s),
     .max = SECONDS_MAX,
     PARAM_DOC("Seconds to wait for the end; the command runs on then", "no limit")},
    {.key = "max_output_bytes",
     .type = PARAM_INT,
     .offset = AT(run_params, max_output_bytes),
     PARAM_DOC("Most bytes of output, of which head and tail are kept; 0 and less mean the default",
               "10485760")},
    {.key = "interrupt_abandoned",
     .type = PARAM_BOOL,
     .offset = AT(run_params, interrupt_abandoned),
     PARAM_DOC("Interrupt the command where the client goes away", "false")},
};
const struct params_table session_run_params = PARAMS_TABLE(run_list);

static const struct param resize_list[] = {
    {.key = "session_name",
     .type = PARAM_NAME,
     .offset = AT(resize_params, session_name),
     .required = true,
     PARAM_DOC("The session, as it was named when it began", NULL)},
    {.key = "rows",
     .type = PARAM_INT,
     .offset = AT(resize_params, rows),
     .required = true,
     .min = 1,
     .max = 32767,
     PARAM_DOC("Height of the terminal", NULL)},
    {.key = "cols",
     .type = PARAM_INT,
     .offset = AT(resize_params, cols),
     .required = true,
     .min = 1,
     .max = 32767,
     PARAM_DOC("Width of the terminal", NULL)},
};
const struct params_table session_resize_params = PARAMS_TABLE(resize_list);

static const struct param signal_list[] = {
    {.key = "session_name",
     .type = PARAM_NAME,
     .offset = AT(signal_params, session_name),
     .required = true,
     PARAM_DOC("The session, as it was named when it began", NULL)},
    {.key = "signal",
     .type = PARAM_NAME,
     .offset = AT(signal_params, signal),
     .required = true,
     PARAM_DOC("Name or number of a signal: INT, SIGTERM, 9", NULL)},
};
const struct params_table session_signal_params = PARAMS_TABLE(signal_list);

static const struct param close_list[] = {
    {.key = "session_name",
     .type = PARAM_NAME,
     .offset = AT(signal_params, session_name),
     .required = true,
     PARAM_DOC("The session, as it was named when it began", NULL)},
};
const struct params_table session_name_params = PARAMS_TABLE(close_list);

/* Unpacks, or answers with what is wrong. */
bool session_unpack(struct rpc_call *call, const struct params_table *table, struct span params, void *into)
{
    struct err err;
    if (params_unpack(table, params, into, &err) == 0)
        return true;
    rpc_fail(call, &err);
    return false;
}
