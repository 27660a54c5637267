#include "serve_relay.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fifo.h"
#include "io.h"
#include "mem.h"
#include "rpc.h"
#include "self.h"
#include "serve.h"
#include "serve_far.h"
#include "spawn.h"

#define LEAVE_MS 6000 /* for the child, once its session has ended */
#define SAID_MAX 4096 /* bytes of what it says on stderr that are kept */
#define EDITS_MAX 4
#define READS_MAX 1000 /* of what an ended child has left */
#define SUBSCRIPTION "io.modelcontextprotocol/subscriptionId"

/* A request that the child has not answered. */
struct asked {
    struct asked *next;
    unsigned number;    /* by which the child knows it, and its progress */
    char *id, *token;   /* as the client has them; token NULL: none */
    struct sse *stream; /* of whoever waits */
};

struct relay {
    struct loop *loop;
    struct relay_owner owner;
    bool many, ending;
    unsigned numbers;
    struct asked *asked; /* the newest first */
    pid_t pid;           /* 0: it has ended */
    int in, out, errors;
    struct loop_source *writer, *reader, *hearer, *child, *leaving;
    struct fifo waiting;
    struct buf line, said;
};

/* ---- to the child ---- */

static void forget(struct relay *r, struct asked *a)
{
    struct asked **at = &r->asked;
    while (*at != a)
        at = &(*at)->next;
    *at = a->next;
    free(a->id);
    free(a->token);
    free(a);
}

static void on_writable(void *arg, int events)
{
    struct relay *r = arg;
    if (!(events & LOOP_HANGUP) && r->waiting.len > 0 && fifo_write(&r->waiting, r->in) < 0 &&
        (errno == EAGAIN || errno == EINTR))
        return;
    if (events & LOOP_HANGUP || (r->waiting.len > 0 && errno == EPIPE))
        loop_drop(&r->writer); /* it is ending, which is told by its process */
    else if (r->waiting.len == 0)
        loop_fd_events(r->writer, 0);
}

static void send_line(struct relay *r, struct span line)
{
    struct buf compact BUF_AUTO = BUF_INIT;
    if (!r->writer)
        return;
    json_compact(&compact, line);
    buf_addc(&compact, '\n');
    fifo_add(&r->waiting, compact.data, compact.len);
    loop_fd_events(r->writer, LOOP_WRITE);
}

static void tell_cancelled(struct relay *r, const struct asked *a)
{
    struct buf text BUF_AUTO = BUF_INIT;
    buf_addf(&text,
             "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":%u}}",
             a->number);
    send_line(r, span_of(&text));
}

void relay_cancel(struct relay *r, struct sse *stream)
{
    for (struct asked *a = r->asked, *next; a; a = next) {
        next = a->next;
        if (a->stream != stream)
            continue;
        tell_cancelled(r, a);
        forget(r, a); /* it is not answered */
    }
    r->owner.said(stream, (struct span){0}, true);
}

/* ---- what clients say ---- */

/* Whether another request of that stream is open. */
static bool has_more(const struct relay *r, const struct sse *stream)
{
    for (const struct asked *a = r->asked; a; a = a->next)
        if (a->stream == stream)
            return true;
    return false;
}

static void take_cancelled(struct relay *r, struct span message, struct span params)
{
    struct span id;
    struct buf text BUF_AUTO = BUF_INIT;
    if (r->many || !json_member(params, "requestId", &id, NULL)) /* an id is nobody's there */
        return;
    for (struct asked *a = r->asked; a; a = a->next)
        if (span_is(id, a->id)) {
            char number[16];
            snprintf(number, sizeof number, "%u", a->number);
            struct edit edit = {id, number};
            far_put_edited(&text, message, &edit, 1);
            send_line(r, span_of(&text));
            struct sse *stream = a->stream;
            forget(r, a); /* it is not answered */
            r->owner.said(stream, (struct span){0}, !has_more(r, stream));
            return;
        }
}

/* Appends what the child is to get of one message, if anything. */
static void put_message(struct relay *r, struct sse *stream, struct span message, struct buf *out)
{
    struct span id, method, params, meta, token;
    struct edit edits[EDITS_MAX];
    size_t n = 0;
    bool has_method = far_inside(message, "method", JSON_STRING, &method);
    bool has_params = far_inside(message, "params", JSON_OBJECT, &params);
    if (json_kind(message) != JSON_OBJECT || !json_member(message, "id", &id, NULL)) {
        if (has_method && json_string_is(method, "notifications/cancelled")) {
            if (has_params)
                take_cancelled(r, message, params);
        } else {
            buf_add(out, message.s, message.n);
        }
        return;
    }
    if (!has_method) /* an answer: the child asks nobody */
        return;
    struct asked *a = mem_zalloc(sizeof *a);
    char number[16];
    a->number = ++r->numbers;
    a->id = mem_dup(id.s, id.n);
    a->stream = stream;
    a->next = r->asked;
    r->asked = a;
    snprintf(number, sizeof number, "%u", a->number);
    edits[n++] = (struct edit){id, number};
    if (has_params && far_inside(params, "_meta", JSON_OBJECT, &meta) &&
        json_member(meta, "progressToken", &token, NULL)) {
        a->token = mem_dup(token.s, token.n);
        edits[n++] = (struct edit){token, number};
    }
    far_put_edited(out, message, edits, n);
}

static void answer_error(struct relay *r, struct sse *stream, struct span id, const struct err *err)
{
    struct buf text BUF_AUTO = BUF_INIT;
    rpc_put_error(&text, id, err);
    r->owner.said(stream, span_of(&text), true);
}

/* What the child would have no one to answer for. */
static bool is_answerable(struct span message)
{
    struct span id;
    return json_kind(message) == JSON_OBJECT &&
           (!json_member(message, "id", &id, NULL) || json_kind(id) == JSON_STRING ||
            json_kind(id) == JSON_NUMBER);
}

void relay_message(struct relay *r, struct sse *stream, struct span text)
{
    struct buf out BUF_AUTO = BUF_INIT;
    struct err err;
    struct span one;
    bool many = json_check(text, &err) == 0 && json_kind(text) == JSON_ARRAY, fine = many;
    if (json_check(text, &err) == 0 && !many && !(fine = is_answerable(text)))
        err_set(&err, ERR_INVALID_REQUEST,
                "Invalid request: must be an object whose id is a text or a number");
    if (!fine) {
        answer_error(r, stream, (struct span){0}, &err);
        return;
    }
    if (!many) {
        put_message(r, stream, text, &out);
    } else {
        buf_addc(&out, '[');
        for (size_t at = 0; json_element(text, &at, &one);) {
            size_t before = out.len;
            if (before > 1)
                buf_addc(&out, ',');
            size_t begin = out.len;
            put_message(r, stream, one, &out);
            if (out.len == begin)
                buf_truncate(&out, before);
        }
        buf_addc(&out, ']');
    }
    if (out.len > (many ? 2 : 0)) /* of an empty array nothing is left to be said */
        send_line(r, span_of(&out));
}

bool relay_is_busy(const struct relay *r)
{
    return r->asked != NULL;
}

/* ---- what the child says ---- */

static struct asked *find(const struct relay *r, struct span number)
{
    char text[16] = "";
    if (number.n < sizeof text)
        memcpy(text, number.s, number.n);
    struct asked *a = r->asked;
    while (a && (json_kind(number) != JSON_NUMBER || a->number != strtoul(text, NULL, 10)))
        a = a->next;
    return a;
}

/* The answer with its own names. Whose it is, who is forgotten; NULL: nobody's. */
static struct sse *put_answer(struct relay *r, struct span message, struct buf *out)
{
    struct span id, result, meta, subscription;
    struct edit edits[EDITS_MAX];
    size_t n = 0;
    if (!json_member(message, "id", &id, NULL))
        return NULL;
    struct asked *a = find(r, id);
    if (!a)
        return NULL;
    struct sse *stream = a->stream;
    edits[n++] = (struct edit){id, a->id};
    if (far_inside(message, "result", JSON_OBJECT, &result) &&
        far_inside(result, "_meta", JSON_OBJECT, &meta) &&
        json_member(meta, SUBSCRIPTION, &subscription, NULL))
        edits[n++] = (struct edit){subscription, a->id};
    far_put_edited(out, message, edits, n);
    forget(r, a);
    return stream;
}

static void take_answers(struct relay *r, struct span array)
{
    struct buf out BUF_AUTO = BUF_INIT;
    struct sse *stream = NULL;
    struct span one;
    buf_addc(&out, '[');
    for (size_t at = 0; json_element(array, &at, &one);) {
        size_t before = out.len;
        if (before > 1)
            buf_addc(&out, ',');
        size_t begin = out.len;
        struct sse *whose = put_answer(r, one, &out);
        stream = whose ? whose : stream;
        if (out.len == begin)
            buf_add(&out, one.s, one.n); /* of one that had no id that could be read */
    }
    buf_addc(&out, ']');
    if (stream)
        r->owner.said(stream, span_of(&out), true);
}

/* Who is told what isn't said of a certain request: the only one, or the newest of a client. */
static struct sse *anybody(const struct relay *r)
{
    struct sse *stream = NULL;
    for (const struct asked *a = r->asked; a; a = a->next) {
        if (stream && r->many && a->stream != stream)
            return NULL;
        stream = stream ? stream : a->stream;
    }
    return stream;
}

static void take_notification(struct relay *r, struct span message)
{
    struct buf out BUF_AUTO = BUF_INIT;
    struct span params, meta, name = {0};
    struct sse *stream = anybody(r);
    struct asked *a = NULL;
    if (far_inside(message, "params", JSON_OBJECT, &params) &&
        (json_member(params, "progressToken", &name, NULL) ||
         (far_inside(params, "_meta", JSON_OBJECT, &meta) && json_member(meta, SUBSCRIPTION, &name, NULL)))) {
        a = find(r, name);
        stream = a ? a->stream : NULL;
    }
    struct edit edit = {name, a && a->token ? a->token : a ? a->id : NULL};
    far_put_edited(&out, message, &edit, a ? 1 : 0);
    if (stream)
        r->owner.said(stream, span_of(&out), false);
}

static void take_line(struct relay *r, struct span line)
{
    struct buf out BUF_AUTO = BUF_INIT;
    struct span member;
    if (json_check(line, NULL) < 0)
        return;
    if (json_kind(line) == JSON_ARRAY) {
        take_answers(r, line);
    } else if (json_kind(line) == JSON_OBJECT && json_member(line, "method", &member, NULL)) {
        if (!json_member(line, "id", &member, NULL))
            take_notification(r, line);
    } else if (json_kind(line) == JSON_OBJECT) {
        struct sse *stream = put_answer(r, line, &out);
        if (stream)
            r->owner.said(stream, span_of(&out), !has_more(r, stream));
    }
}

static void on_readable(void *arg, int events)
{
    struct relay *r = arg;
    (void)events;
    ssize_t n = io_read_more(r->out, &r->line);
    if (n < 0 && errno == EAGAIN)
        return;
    if (n <= 0) {
        loop_drop(&r->reader);
        return;
    }
    size_t at = 0;
    for (char *end; (end = memchr(r->line.data + at, '\n', r->line.len - at));) {
        size_t stop = (size_t)(end - r->line.data);
        take_line(r, (struct span){r->line.data + at, stop - at});
        at = stop + 1;
    }
    buf_consume(&r->line, at);
    if (r->line.len == 0)
        buf_shrink(&r->line);
}

static void on_heard(void *arg, int events)
{
    struct relay *r = arg;
    (void)events;
    size_t before = r->said.len;
    ssize_t n = io_read_more(r->errors, &r->said);
    if (n < 0 && errno == EAGAIN)
        return;
    if (n <= 0) {
        loop_drop(&r->hearer);
        return;
    }
    io_write_all(STDERR_FILENO, r->said.data + before, (size_t)n); /* where it can't be said it is kept */
    if (r->said.len > SAID_MAX)
        buf_consume(&r->said, r->said.len - SAID_MAX);
}

/* ---- its end ---- */

/* With what it has said on stderr. */
static void put_why(struct relay *r, struct err *err)
{
    size_t n = r->said.len;
    while (n > 0 && r->said.data[n - 1] == '\n')
        n--;
    err_set(err, -32603, "Internal error: what serves in the target has ended%s%.*s", n > 0 ? ": " : "",
            (int)n, buf_str(&r->said));
}

static void on_child(void *arg, pid_t pid, int status)
{
    struct relay *r = arg;
    struct err err;
    (void)pid;
    (void)status;
    r->pid = 0;
    r->child = NULL;
    for (int i = 0; i < READS_MAX && r->reader && io_is_readable(r->out); i++)
        on_readable(r, LOOP_READ); /* what it said last; others may hold its end of the pipe */
    if (r->hearer && io_is_readable(r->errors))
        on_heard(r, LOOP_READ);
    put_why(r, &err);
    while (r->asked) {
        struct sse *stream = r->asked->stream;
        struct span id = {r->asked->id, strlen(r->asked->id)};
        struct buf text BUF_AUTO = BUF_INIT;
        rpc_put_error(&text, id, &err);
        forget(r, r->asked);
        if (stream)
            r->owner.said(stream, span_of(&text), !has_more(r, stream));
    }
    r->owner.over(r->owner.arg);
}

static void out_of_patience(void *arg)
{
    struct relay *r = arg;
    if (r->pid > 0)
        kill(r->pid, SIGKILL);
}

static void hang_up(struct relay *r)
{
    loop_drop(&r->writer);
    io_close(&r->in);
}

void relay_end(struct relay *r)
{
    if (r->ending)
        return;
    r->ending = true;
    for (struct asked *a = r->asked; a; a = a->next)
        tell_cancelled(r, a);
    while (r->asked)
        forget(r, r->asked);
    if (r->waiting.len > 0)
        fifo_write(&r->waiting, r->in); /* what fits: its end is told by the end of the pipe as well */
    hang_up(r);
    r->leaving = loop_timer(r->loop, LEAVE_MS, out_of_patience, r);
}

void relay_free(struct relay *r)
{
    if (!r)
        return;
    if (r->pid > 0)
        kill(r->pid, SIGKILL);
    hang_up(r);
    loop_drop(&r->reader);
    loop_drop(&r->hearer);
    loop_drop(&r->child);
    loop_drop(&r->leaving);
    io_close(&r->out);
    io_close(&r->errors);
    while (r->asked)
        forget(r, r->asked);
    fifo_release(&r->waiting);
    buf_release(&r->line);
    buf_release(&r->said);
    free(r);
}

/* ---- its begin ---- */

static int start(struct relay *r, const struct serve_far *far, const char *target, int fds[3],
                 struct err *err)
{
    char *self MEM_AUTO = self_path();
    const char *const programs[] = {self, NULL};
    size_t n = 0, more = 0;
    while (far->rest[more])
        more++;
    char **argv = mem_zalloc((more + 6) * sizeof *argv);
    argv[n++] = self;
    argv[n++] = (char *)"mcp";
    argv[n++] = (char *)"serve";
    argv[n++] = (char *)"--in";
    argv[n++] = (char *)target;
    memcpy(argv + n, far->rest, more * sizeof *argv);
    struct spawn s = {.programs = programs, .argv = argv, .env = environ, .cwd = ".", .start_dir = -1};
    memcpy(s.fds, fds, sizeof s.fds);
    r->pid = self ? spawn(&s, NULL, err) : err_set(err, ERR_INTERNAL, "this program can't be found");
    free(argv);
    return r->pid > 0 ? 0 : -1;
}

struct relay *relay_new(struct loop *loop, const struct serve_far *far, const char *target, bool many,
                        const struct relay_owner *owner, struct err *err)
{
    int pipes[3][2] = {{-1, -1}, {-1, -1}, {-1, -1}};
    struct relay *r = mem_zalloc(sizeof *r);
    *r = (struct relay){.loop = loop, .owner = *owner, .many = many};
    r->line = r->said = (struct buf)BUF_INIT;
    int made = io_pipes(pipes, 3);
    int fds[3] = {pipes[0][0], pipes[1][1], pipes[2][1]};
    r->in = pipes[0][1];
    r->out = pipes[1][0];
    r->errors = pipes[2][0];
    if (made < 0)
        err_sys(err, ERR_INTERNAL, errno, "no pipe can be had");
    int result = made < 0 ? -1 : start(r, far, target, fds, err);
    for (int i = 0; i < 3; i++)
        io_close(&fds[i]);
    if (result < 0) {
        r->pid = 0;
        relay_free(r);
        return NULL;
    }
    io_set_nonblock(r->in, true);
    io_set_nonblock(r->out, true);
    io_set_nonblock(r->errors, true);
    r->writer = loop_fd(loop, r->in, 0, on_writable, r);
    r->reader = loop_fd(loop, r->out, LOOP_READ, on_readable, r);
    r->hearer = loop_fd(loop, r->errors, LOOP_READ, on_heard, r);
    r->child = loop_child(loop, r->pid, on_child, r);
    return r;
}
