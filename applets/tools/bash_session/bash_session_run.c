/* `run`: a command's output as it comes, and its status. */
#include "bash_session_call.h"

#include <stdlib.h>
#include <string.h>

#include "applet.h"
#include "commands/exec/command_print.h"
#include "words.h"

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
#define ANY_TIME_S 1e9 /* no limit */
#define STEP_MAX_S 0.5

static void put_seconds(const char *key, double seconds, struct buf *params)
{
    json_key(params, key);
    buf_addf(params, "%.9g", seconds);
}

/* One step of a run; NULL: of the command that runs, else for so long until it begins. `timeout_s` < 0: none.
 */
static int step_of(const struct command_line *c, const struct buf *command, double ready_s, double timeout_s,
                   long long max, struct buf *result)
{
    struct buf params BUF_AUTO = BUF_INIT;
    session_call_begin(c, &params);
    if (command) {
        json_member_text(&params, "command", buf_str(command), command->len);
        put_seconds("ready_timeout", ready_s >= 0 ? ready_s : ANY_TIME_S, &params);
    }
    if (timeout_s >= 0)
        put_seconds("timeout", timeout_s, &params);
    session_put_max(c, max, &params);
    int status = command_call(c, "bash_session_run", &params, result);
    return status == EXIT_FAILED ? EXIT_NOT_RUN : status;
}

/* One step's output. `cut` is NULL where all of it is wanted. */
static int print_step(const struct command_line *c, const struct buf *result, struct cut *cut)
{
    struct span output;
    if (!cut || !json_member(span_of(result), "output", &output, NULL))
        return session_print(c, result, "output", false);
    int status = session_print_cut(c, output, cut);
    return status == EXIT_OK && !is_state(result, "timeout") ? session_print_end(c, cut) : status;
}

static int stream(const struct command_line *c, const struct buf *command, double timeout_s, struct cut *cut)
{
    double step = STEP_MIN_S, left = timeout_s;
    for (;; command = NULL) {
        struct buf result BUF_AUTO = BUF_INIT;
        struct span output;
        step = timeout_s >= 0 && step > left ? left : step;
        int status = step_of(c, command, timeout_s, step, 0, &result);
        if (status == EXIT_OK)
            status = print_step(c, &result, cut);
        if (status != EXIT_OK)
            return status;
        left -= step;
        if (is_state(&result, "awaiting_input"))
            applet_failed(c->applet->name, "the command waits for input; give it with send");
        if (!is_state(&result, "timeout"))
            return status_of(&result);
        if (timeout_s >= 0 && left <= 0) {
            if (cut)
                session_print_end(c, cut);
            applet_failed(
                c->applet->name,
                "the command is still running after %s; read gets what it prints, interrupt ends it",
                command_value(c, "timeout"));
            return EXIT_STILL_RUNNING;
        }
        json_member(span_of(&result), "output", &output, NULL);
        bool quiet = output.n <= 2; /* its quotes */
        step = !quiet ? STEP_MIN_S : step * 2 < STEP_MAX_S ? step * 2 : STEP_MAX_S;
    }
}

int bash_session_run(const struct command_line *c)
{
    struct buf command BUF_AUTO = BUF_INIT;
    struct buf result BUF_AUTO = BUF_INIT;
    const char *timeout = command_value(c, "timeout");
    double timeout_s = -1;
    long long max = 0;
    int status = session_take_max(c, &max);
    struct cut cut CUT_AUTO = CUT_INIT((size_t)max / 2, (size_t)max - (size_t)max / 2);
    if (status == EXIT_OK && timeout)
        status = words_seconds(c->applet->name, "--timeout", timeout, 0, ANY_TIME_S, &timeout_s);
    if (status == EXIT_OK)
        status = words_text(c->applet->name, c->words[1], &command);
    if (status != EXIT_OK)
        return status;
    if (!command_value(c, "json"))
        return stream(c, &command, timeout_s, max > 0 ? &cut : NULL);
    status = step_of(c, &command, timeout_s, timeout_s, max, &result);
    if (status == EXIT_OK)
        status = session_print(c, &result, NULL, true);
    return status == EXIT_OK ? status_of(&result) : status;
}
