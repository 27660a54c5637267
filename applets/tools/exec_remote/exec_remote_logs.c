#include "exec_remote_logs.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "commands/exec/command_print.h"
#include "io.h"
#include "job_text.h"

static void print_stream(struct span answer, const char *key, int fd, int *failed)
{
    struct buf text BUF_AUTO = BUF_INIT;
    struct span value;
    if (json_member(answer, key, &value, NULL) && json_string_text(value, &text) &&
        io_write_all(fd, buf_str(&text), text.len) < 0)
        *failed = errno;
}

int exec_remote_print_text(const struct command_line *c, struct span answer)
{
    int failed = 0;
    print_stream(answer, "stdout", STDOUT_FILENO, &failed);
    print_stream(answer, "stderr", STDERR_FILENO, &failed);
    return failed == 0 ? EXIT_OK : applet_failed(c->applet->name, "cannot write: %s", err_text(failed));
}

static int ask(const struct command_line *c, const char *method, long long ack, struct buf *answer)
{
    struct buf params BUF_AUTO = BUF_INIT;
    buf_addc(&params, '{');
    if (command_number(c, "PID", c->words[0], &params, "pid") != EXIT_OK)
        return EXIT_USAGE;
    json_member_int(&params, "ack_seq", ack);
    return command_call(c, method, &params, answer);
}

static size_t length_of(struct span answer, const char *key)
{
    struct span value;
    return json_member(answer, key, &value, NULL) ? value.n : 0;
}

/* Acknowledges nothing: an answer brings all that an earlier one brought, and a step more. */
static int print_all(const struct command_line *c)
{
    struct buf answer BUF_AUTO = BUF_INIT;
    size_t before, now = 0;
    int status;
    do {
        before = now;
        buf_truncate(&answer, 0);
        status = ask(c, "exec_remote_poll", 0, &answer);
        now = length_of(span_of(&answer), "stdout") + length_of(span_of(&answer), "stderr");
    } while (status == EXIT_OK && now > before);
    if (status == EXIT_OK)
        status = exec_remote_print_text(c, span_of(&answer));
    if (status == EXIT_OK && now >= JOB_UNACKED_MAX)
        applet_failed(c->applet->name,
                      "there may be more, which comes once this is acknowledged: see logs --follow");
    return status;
}

/* The exit status where it has ended; -1: it runs. */
static int status_of(struct span answer)
{
    struct span value;
    if (!json_member(answer, "exit_code", &value, NULL) || span_is(value, "null"))
        return -1;
    long code = strtol(value.s, NULL, 10);
    return (int)(code < 0 ? 128 - code : code);
}

static int follow(const struct command_line *c)
{
    int ended = -1;
    for (long long seq = 0; ended < 0;) {
        struct buf answer BUF_AUTO = BUF_INIT;
        struct buf last BUF_AUTO = BUF_INIT;
        struct span value;
        int status = ask(c, "exec_remote_wait", seq, &answer);
        if (status == EXIT_OK)
            status = exec_remote_print_text(c, span_of(&answer));
        if (status != EXIT_OK)
            return status;
        if (json_member(span_of(&answer), "seq", &value, NULL))
            seq = strtoll(value.s, NULL, 10);
        ended = status_of(span_of(&answer));
        if (ended >= 0)
            ask(c, "exec_remote_poll", seq, &last); /* which acknowledges the rest */
    }
    return ended;
}

int exec_remote_logs(const struct command_line *c)
{
    return command_value(c, "follow") ? follow(c) : print_all(c);
}
