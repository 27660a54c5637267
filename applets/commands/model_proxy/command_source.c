#include "command_source.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io.h"
#include "mem.h"
#include "spawn.h"

struct command_call {
    struct command_source *of;
    service_answer_fn answer;
    void *arg;
    struct slot slot;
    int input, output;
    pid_t pid; /* 0: it has ended, with `status` */
    int status;
    struct loop_source *source, *child, *timer;
    struct buf text; /* what it has printed */
};

static void drop(struct command_call *c)
{
    loop_drop(&c->source);
    loop_drop(&c->child);
    loop_drop(&c->timer);
    if (c->pid > 0)
        kill(-c->pid, SIGKILL);
    io_close(&c->input);
    io_close(&c->output);
    slot_leave(&c->slot);
    buf_release(&c->text);
    free(c);
}

static void give(struct command_call *c, struct buf *text, struct span result)
{
    service_answer_fn answer = c->answer;
    void *arg = c->arg;
    drop(c);
    answer(arg, result, text, NULL);
}

static void give_error(struct command_call *c, struct span error, int status, const char *message)
{
    struct buf text BUF_AUTO = BUF_INIT;
    buf_adds(&text, "{\"__inspect_provider_error__\":");
    if (error.s) {
        buf_add(&text, error.s, error.n);
    } else {
        buf_addc(&text, '{');
        json_member_int(&text, "status", status);
        json_member_string(&text, "message", message);
        buf_addc(&text, '}');
    }
    buf_addc(&text, '}');
    give(c, &text, span_of(&text));
}

static void give_line(struct command_call *c, struct span line)
{
    struct span value;
    struct buf message BUF_AUTO = BUF_INIT;
    struct buf text BUF_AUTO = BUF_INIT;
    if (json_check(line, NULL) < 0 || json_kind(line) != JSON_OBJECT) {
        give_error(c, (struct span){0}, 502, "the line of the command that answers is no JSON object");
        return;
    }
    buf_add(&text, line.s, line.n); /* c has the line, and goes */
    line = span_of(&text);
    if (json_member(line, "error", &value, NULL) && json_kind(value) == JSON_OBJECT)
        give_error(c, value, 0, NULL);
    else if (json_member(line, "error", &value, NULL) && json_string_text(value, &message))
        give_error(c, (struct span){0}, 500, buf_str(&message));
    else
        give(c, &text, json_member(line, "result", &value, NULL) ? value : line);
}

/* It has closed its output, and has ended. */
static void give_end(struct command_call *c)
{
    char *why MEM_AUTO = NULL;
    size_t n = c->text.len;
    while (n > 0 && strchr(" \t\r\n", c->text.data[n - 1]))
        n--;
    if (n > 0 && WIFEXITED(c->status) && WEXITSTATUS(c->status) == 0) {
        give_line(c, (struct span){c->text.data, n});
        return;
    }
    if (WIFSIGNALED(c->status))
        why = mem_printf("the command that answers was ended by signal %d", WTERMSIG(c->status));
    else
        why = mem_printf("the command that answers has ended with status %d and no line",
                         WEXITSTATUS(c->status));
    give_error(c, (struct span){0}, 502, why);
}

static void on_child(void *arg, pid_t pid, int status)
{
    struct command_call *c = arg;
    (void)pid;
    c->pid = 0;
    c->child = NULL;
    c->status = status;
    if (!c->source)
        give_end(c);
}

static void on_readable(void *arg, int events)
{
    struct command_call *c = arg;
    (void)events;
    ssize_t n = io_read_more(c->output, &c->text);
    if (n < 0 && errno == EAGAIN)
        return;
    const char *newline = n > 0 ? memchr(c->text.data, '\n', c->text.len) : NULL;
    if (newline && newline > c->text.data) {
        give_line(c, (struct span){c->text.data, (size_t)(newline - c->text.data)});
    } else if (n <= 0) {
        loop_drop(&c->source);
        if (c->pid == 0)
            give_end(c);
    }
}

static void on_failed(void *arg)
{
    struct command_call *c = arg;
    give_error(c, (struct span){0}, 502, buf_str(&c->text));
}

/* Its answer comes from the loop, as any. */
static void fail(struct command_call *c, const char *why)
{
    buf_addf(&c->text, "the command that answers can't be run: %s", why);
    c->timer = loop_timer(c->of->loop, 1, on_failed, c);
}

static void start(void *arg)
{
    struct command_call *c = arg;
    struct err err;
    int pipes[1][2];
    static const char *const programs[] = {"/bin/sh", NULL};
    char sh[] = "sh", flag[] = "-c", *argv[] = {sh, flag, (char *)c->of->command, NULL};
    if (io_pipes(pipes, 1) < 0) {
        fail(c, err_text(errno));
        return;
    }
    struct spawn s = {.programs = programs,
                      .argv = argv,
                      .env = environ,
                      .cwd = ".",
                      .start_dir = -1,
                      .fds = {c->input, pipes[0][1], STDERR_FILENO}};
    c->pid = spawn(&s, NULL, &err);
    io_close(&pipes[0][1]);
    io_close(&c->input);
    c->output = pipes[0][0];
    if (c->pid < 0) {
        c->pid = 0;
        fail(c, err.msg);
        return;
    }
    io_set_nonblock(c->output, true);
    c->source = loop_fd(c->of->loop, c->output, LOOP_READ, on_readable, c);
    c->child = loop_child(c->of->loop, c->pid, on_child, c);
}

static void *call(void *of, const char *method, struct span params, service_answer_fn answer, void *arg)
{
    struct command_call *c = mem_zalloc(sizeof *c);
    struct buf line BUF_AUTO = BUF_INIT;
    *c = (struct command_call){.of = of, .answer = answer, .arg = arg, .output = -1, .text = BUF_INIT};
    buf_addc(&line, '{');
    json_member_string(&line, "method", method);
    json_key(&line, "params");
    json_compact(&line, params);
    buf_adds(&line, "}\n");
    c->input = memfd_create("call", MFD_CLOEXEC);
    if (c->input < 0 || io_write_all(c->input, line.data, line.len) < 0 || lseek(c->input, 0, SEEK_SET) < 0)
        fail(c, err_text(errno));
    else
        slot_ask(c->of->slots, &c->slot, start, c);
    return c;
}

static void cancel(void *call)
{
    drop(call);
}

struct proxy_source command_source(struct command_source *of)
{
    return (struct proxy_source){.of = of, .call = call, .cancel = cancel};
}
