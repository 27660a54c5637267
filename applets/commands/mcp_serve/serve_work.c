/* The inside of the process that does one call: what it is told lies in memory that it was forked with, what
 * it has to say goes through a pipe. */
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "io.h"
#include "mem.h"
#include "serve.h"
#include "serve_policy.h"
#include "surroundings.h"
#include "commands/exec/route.h"
#include "commands/server/server.h"

/* ---- saying ---- */

static void say(int out, char kind, const void *data, size_t n)
{
    struct frame head = {.kind = kind, .n = (unsigned)n};
    if (io_write_all(out, &head, sizeof head) < 0 || (n > 0 && io_write_all(out, data, n) < 0))
        _exit(1); /* nobody listens any more */
}

static void say_text(int out, char kind, const char *text)
{
    say(out, kind, text, strlen(text));
}

static void hold_term(int how)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigprocmask(how, &set, NULL);
}

void work_make_begin(void)
{
    hold_term(SIG_BLOCK);
}

void work_make_end(void)
{
    hold_term(SIG_UNBLOCK);
}

void work_status(struct work *w, const char *fmt, ...)
{
    struct buf text BUF_AUTO = BUF_INIT;
    va_list ap;
    va_start(ap, fmt);
    buf_addv(&text, fmt, ap);
    va_end(ap);
    say(w->out, FRAME_STATUS, text.data, text.len);
}

void work_log(struct work *w, const char *level, const char *fmt, ...)
{
    struct buf text BUF_AUTO = BUF_INIT;
    va_list ap;
    buf_add(&text, level, strlen(level) + 1);
    va_start(ap, fmt);
    buf_addv(&text, fmt, ap);
    va_end(ap);
    say(w->out, FRAME_LOG, text.data, text.len);
}

void work_made_session(struct work *w, const char *name, bool is_default)
{
    say_text(w->out, is_default ? FRAME_MADE_DEFAULT : FRAME_MADE, name);
}

void work_closed_session(struct work *w, const char *name)
{
    say_text(w->out, FRAME_CLOSED, name);
}

void work_browser(struct work *w, const char *name)
{
    say_text(w->out, FRAME_BROWSER, name);
}

void work_computer(struct work *w, const char *name)
{
    say_text(w->out, FRAME_COMPUTER, name);
}

int work_open_session(struct work *w, const char *method, void (*keep)(struct work *w, const char *name),
                      struct buf *name, struct err *err)
{
    struct buf params BUF_AUTO = BUF_INIT;
    struct buf result BUF_AUTO = BUF_INIT;
    struct span value;
    buf_addf(&params, "{\"ends_with\":%ld", (long)w->serve);
    surroundings_put(&params);
    buf_addc(&params, '}');
    work_make_begin();
    if (call_method(method, span_of(&params), &result, err) < 0)
        return -1;
    if (!json_member(span_of(&result), "session_name", &value, NULL) || !json_string_text(value, name))
        return err_set(err, ERR_INTERNAL, "the session of %s has no name", method);
    keep(w, buf_str(name));
    work_make_end();
    return 0;
}

void work_made_job(struct work *w, long long pid)
{
    say(w->out, FRAME_JOB, &pid, sizeof pid);
}

void work_tells_job(struct work *w, long long pid, bool ended)
{
    say(w->out, ended ? FRAME_JOB_ENDED : FRAME_JOB_TOLD, &pid, sizeof pid);
}

void work_job_output(struct work *w, long long pid, long long seq, struct span out, struct span err)
{
    struct buf text BUF_AUTO = BUF_INIT;
    struct frame_output head = {.pid = pid, .seq = seq, .n_out = out.n};
    buf_add(&text, &head, sizeof head);
    buf_add(&text, out.s, out.n);
    buf_add(&text, err.s, err.n);
    say(w->out, FRAME_JOB_OUTPUT, text.data, text.len);
}

/* ---- arguments ---- */

bool mcp_word_is_of(const char *words, const char *word, size_t n)
{
    for (const char *at = words; at; at = strchr(at, '|')) {
        at += *at == '|';
        if (strcspn(at, "|") == n && memcmp(at, word, n) == 0)
            return true;
    }
    return false;
}

void mcp_tool_params(const struct mcp_tool *tool, struct param *list, struct args *args)
{
    *args = (struct args){.session = {0}};
    for (size_t i = 0; i < tool->n_fields; i++) {
        const struct field *f = &tool->fields[i];
        char *value = (char *)args + f->offset;
        list[i] = (struct param){.key = f->key,
                                 .type = (unsigned char)f->type,
                                 .offset = (unsigned short)f->offset,
                                 .required = f->required,
                                 .min = f->min,
                                 .max = f->max == UNBOUNDED ? PARAM_MAX : f->max};
        long long integer = f->otherwise;
        double number = (double)integer;
        bool flag = f->otherwise != 0;
        if (f->type == PARAM_INT)
            memcpy(value, &integer, sizeof integer);
        else if (f->type == PARAM_NUMBER)
            memcpy(value, &number, sizeof number);
        else if (f->type == PARAM_BOOL)
            memcpy(value, &flag, sizeof flag);
    }
}

static int check_words(const struct mcp_tool *tool, const struct args *args, struct err *err)
{
    for (size_t i = 0; i < tool->n_fields; i++) {
        const struct field *f = &tool->fields[i];
        const struct text *t = (const struct text *)(const void *)((const char *)args + f->offset);
        if (!f->words || !t->s || mcp_word_is_of(f->words, t->s, t->n))
            continue;
        struct buf words BUF_AUTO = BUF_INIT;
        for (const char *at = f->words; *at; at++)
            buf_adds(&words, *at == '|' ? ", " : (char[]){*at, '\0'});
        return err_set(err, ERR_PARAMS, "Invalid parameters: %s: must be one of %s", f->key, words.data);
    }
    return 0;
}

static int take_arguments(struct work *w, const struct mcp_tool *tool, struct err *err)
{
    static struct buf text = BUF_INIT; /* for as long as the process */
    serve_arguments(tool, w->arguments, &text);
    w->arguments = span_of(&text);
    struct param list[32];
    struct params_table table = {.list = list, .n = tool->n_fields};
    mcp_tool_params(tool, list, &w->args);
    if (params_unpack(&table, w->arguments, &w->args, err) < 0)
        return -1;
    return check_words(tool, &w->args, err);
}

/* ---- words ---- */

/* What the methods themselves say names others of them, which are tools of other names here. */
static void in_our_words(struct err *err)
{
    static const char *const words[][2] = {
        {"exec_remote_list", "job_list"},
        {"exec_remote_start", "job_start"},
        {"exec_remote_write_stdin", "job_write"},
        {"exec_remote_wait", "job_wait"},
        {"exec_remote_kill", "job_kill"},
        {"bash_session_new_session", "shell_new"},
        {"bash_session_list", "shell_list"},
        {"bash_session_run", "shell_run"},
        {"bash_session_close", "shell_close"},
        {"bash_session", "shell_input"},
        {"open a new one with computer_new_session", "the next call opens a new one"},
        {"open a new session with computer_new_session", "the next call opens a new one"},
        {"interrupt it with input \"\\u0003\"", "end that with shell_interrupt"},
        {"restart the session", "shell_restart starts it anew"},
        {"job found with pid", "job has the number"},
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        for (char *at; (at = strstr(err->msg, words[i][0])) != NULL;) {
            char *rest MEM_AUTO = mem_strdup(at + strlen(words[i][0]));
            snprintf(at, sizeof err->msg - (size_t)(at - err->msg), "%s%s", words[i][1], rest);
        }
}

/* ---- working ---- */

const struct job_note *work_job(const struct work *w, long long pid)
{
    for (const struct job_note *note = w->jobs->first; note; note = note->next)
        if (note->pid == pid)
            return note;
    return NULL;
}

/* Nothing of the client's pipes is left in this process, nor what else the one that serves has open. */
static void settle(struct call *c, int out)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != c->serve->pid)
        _exit(1);
    close(STDIN_FILENO);
    close(STDOUT_FILENO);
    io_fill_std();
    io_close_others(&out, 1);
    signal(SIGPIPE, SIG_IGN);
}

static int work(struct work *w, const struct call *c, struct err *err)
{
    if (c->tool && take_arguments(w, c->tool, err) < 0)
        return -1;
    w->session = w->args.session.s ? w->args.session.s
                 : c->said.session ? c->said.session
                                   : c->serve->made.shell;
    w->browser = c->serve->made.browser;
    w->computer = c->serve->made.computer;
    if (serve_policy_enter(c->tool, err) < 0)
        return -1;
    return c->task(w, err);
}

static void say_result(struct work *w)
{
    struct buf image BUF_AUTO = BUF_INIT;
    if (w->image.len > 0) {
        buf_add(&image, w->image_type, strlen(w->image_type) + 1);
        buf_add(&image, w->image.data, w->image.len);
        say(w->out, FRAME_IMAGE, image.data, image.len);
    }
    if (w->text.len > 0)
        say(w->out, FRAME_TEXT, w->text.data, w->text.len);
    say(w->out, FRAME_STRUCTURED, w->structured.data, w->structured.len);
}

void serve_have_server(const struct call *c)
{
    bool wanted = getppid() == 0 && c->tool && (c->tool->hints & TOOL_OPEN_WORLD);
    int fd = wanted ? server_connect(NULL) : -1;
    io_close(&fd);
}

_Noreturn void serve_work(struct call *c, int out)
{
    struct err err = {0};
    settle(c, out);
    struct work w = {.arguments = c->asks.arguments,
                     .jobs = &c->serve->made.jobs,
                     .serve = c->serve->pid,
                     .keep = c->serve->offer->keep,
                     .out = out,
                     .structured = BUF_INIT,
                     .text = BUF_INIT,
                     .image = BUF_INIT};
    w.args.job = c->said.job;
    if (work(&w, c, &err) < 0) {
        in_our_words(&err);
        say(out, FRAME_ERROR, &err, sizeof err);
    } else {
        say_result(&w);
    }
    say(out, FRAME_DONE, NULL, 0);
    _exit(0);
}
