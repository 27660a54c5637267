#include "bash_session_params.h"

#include <limits.h>
#include <stddef.h>

#include "bash_session_types.h"

#define AT(struct_name, member) offsetof(struct struct_name, member)

#define RECORD(key_, type_, offset_, about_, otherwise_, ...)                                                \
    {                                                                                                        \
        .key = (key_), .type = (type_), .offset = (offset_), PARAM_DOC(about_, otherwise_), __VA_ARGS__      \
    }
#define RECORD_HOW(at)                                                                                       \
    RECORD("path", PARAM_NAME, (at) + AT(record_params, path),                                               \
           "Where to, an absolute path at which nothing is", "a file in the server's directory",             \
           .required = false),                                                                               \
        RECORD("version", PARAM_INT, (at) + AT(record_params, version), "Of asciicast: 2 or 3", "2",         \
               .min = 2, .max = 3),                                                                          \
        RECORD("max_bytes", PARAM_INT, (at) + AT(record_params, max),                                        \
               "Most bytes of a file; what is older is in another one, of the same size at most",            \
               "67108864", .min = 65536, .max = PARAM_MAX)

#ifndef TOOLBOX_GUEST
static const struct param how_list[] = {RECORD_HOW(0)};
static const struct params_table how_table = PARAMS_TABLE(how_list);
#endif

static const struct param new_session_list[] = {
#ifndef TOOLBOX_GUEST
    {.key = "record",
     .type = PARAM_SWITCH,
     .offset = AT(new_session_params, record),
     .table = &how_table,
     PARAM_DOC("Record what is shown and typed, for asciinema and bash_session replay", "false")},
#endif
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
    WALLS_PARAMS(AT(new_session_params, walls)) SURROUNDINGS_PARAM(AT(new_session_params, surroundings)),
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
    {.key = "ready_timeout",
     .type = PARAM_NUMBER,
     .offset = AT(run_params, ready_timeout_s),
     .max = SECONDS_MAX,
     PARAM_DOC(
         "Seconds to wait until the session takes a command, a program other than a shell a minute at most; "
         "it is not given then",
         "`timeout`, 10 at least")},
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

#ifndef TOOLBOX_GUEST
#define TAPE_SESSION                                                                                         \
    {                                                                                                        \
        .key = "session_name", .type = PARAM_NAME, .offset = AT(tape_params, session_name),                  \
        .required = true, PARAM_DOC("The session, as it was named when it began", NULL)                      \
    }

static const struct param record_list[] = {
    TAPE_SESSION,
    RECORD_HOW(AT(tape_params, record)),
    {.key = "stop",
     .type = PARAM_BOOL,
     .offset = AT(tape_params, stop),
     PARAM_DOC("End the recording that there is", "false")},
};
const struct params_table session_record_params = PARAMS_TABLE(record_list);

static const struct param watch_list[] = {
    TAPE_SESSION,
    {.key = "cursor",
     .type = PARAM_INT,
     .offset = AT(tape_params, cursor),
     .max = PARAM_MAX,
     PARAM_DOC("What comes behind this, as an answer gave it", "what was shown last, at once")},
    {.key = "timeout",
     .type = PARAM_NUMBER,
     .offset = AT(tape_params, timeout_s),
     .max = SECONDS_MAX,
     PARAM_DOC("Seconds to wait for something", "no limit")},
};
const struct params_table session_watch_params = PARAMS_TABLE(watch_list);
#endif
