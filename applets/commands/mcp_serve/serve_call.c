/* Calls: when each is begun, what its process says, how it ends. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io.h"
#include "mcp_tools.h"
#include "mem.h"
#include "serve.h"

#define TICK_MS 1000
#define READ_STEP 65536
#define BUSY_MS 2000 /* from the begin of a command, until another one is no more sent along with it */
#define RETRY_MS 20  /* where no process could be had */

/* ---- lanes ---- */

static struct lane *lane_enter(struct serve *s, const char *key)
{
    struct lane *lane = s->calls.lanes;
    while (lane && strcmp(lane->key, key) != 0)
        lane = lane->next;
    if (!lane) {
        lane = mem_zalloc(sizeof *lane);
        lane->key = mem_strdup(key);
        lane->next = s->calls.lanes;
        s->calls.lanes = lane;
    }
    lane->users++;
    return lane;
}

static void lane_leave(struct serve *s, struct lane *lane)
{
    struct lane **at = &s->calls.lanes;
    if (!lane || --lane->users > 0)
        return;
    while (*at != lane)
        at = &(*at)->next;
    *at = lane->next;
    free(lane->key);
    free(lane);
}

/* ---- making and forgetting ---- */

struct call *serve_call_new(struct serve *s, const struct origin *o, struct span text)
{
    struct call *c = mem_zalloc(sizeof *c);
    c->serve = s;
    c->asks.text = mem_dup(text.s, text.n);
    c->asks.n_text = text.n;
    c->origin = *o;
    if (o->id.s)
        c->origin.id.s = c->asks.text + (o->id.s - text.s);
    c->process.pipe = -1;
    buf_init(&c->process.in, BUF_NO_MAX);
    buf_init(&c->said.structured, BUF_NO_MAX);
    buf_init(&c->said.plain, BUF_NO_MAX);
    buf_init(&c->said.image, BUF_NO_MAX);
    c->link = s->calls.last;
    *s->calls.last = c;
    s->calls.last = &c->next;
    s->calls.n++;
    s->calls.bytes += text.n;
    return c;
}

/* The process, whether it has ended or not, has nothing more to say. */
static void stop_listening(struct call *c)
{
    loop_drop(&c->process.source);
    loop_drop(&c->process.child);
    io_close(&c->process.pipe);
    if (c->process.pid > 0)
        c->serve->calls.n_workers--;
    if (c->process.pid > 0 && c->lane)
        c->lane->taken = false;
    c->process.pid = 0;
}

void serve_call_end(struct call *c)
{
    struct serve *s = c->serve;
    stop_listening(c);
    lane_leave(s, c->lane);
    *c->link = c->next;
    if (c->next)
        c->next->link = c->link;
    else
        s->calls.last = c->link;
    s->calls.n--;
    s->calls.bytes -= c->asks.n_text;
    buf_release(&c->process.in);
    buf_release(&c->said.structured);
    buf_release(&c->said.plain);
    buf_release(&c->said.image);
    free(c->said.session);
    free(c->said.status);
    free(c->asks.text);
    free(c);
}

/* ---- ids ---- */

static bool same_id(struct span a, struct span b)
{
    struct buf left BUF_AUTO = BUF_INIT;
    struct buf right BUF_AUTO = BUF_INIT;
    if (json_kind(a) == JSON_STRING && json_kind(b) == JSON_STRING)
        return json_string_text(a, &left) && json_string_text(b, &right) && left.len == right.len &&
               memcmp(buf_str(&left), buf_str(&right), left.len) == 0;
    return a.n == b.n && memcmp(a.s, b.s, a.n) == 0;
}

struct call *serve_call_find(struct serve *s, const struct client *client, struct span id)
{
    for (struct call *c = client->many ? NULL : s->calls.first; c; c = c->next)
        if (!c->silent && c->origin.client == client && c->origin.id.s && same_id(c->origin.id, id))
            return c;
    return NULL;
}

/* ---- ending ---- */

static void complete(struct call *c)
{
    struct serve *s = c->serve;
    stop_listening(c);
    if (c->silent) {
        if (c->origin.id.s)
            serve_nothing(s, &c->origin);
    } else {
        if (c->said.error.code == 0)
            serve_job_told(c);
        serve_tool_result(s, c);
    }
    serve_call_end(c);
    serve_schedule(s);
    s->owner->advanced(s);
}

/* It has gone, and not in the way it should. */
static void died(struct call *c)
{
    int status = c->process.exit_status;
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
        err_set(&c->said.error, ERR_TOOL, "This took too long and was given up: ask for less at once");
    else if (WIFSIGNALED(status))
        err_set(&c->said.error, ERR_TOOL, "The process that did this was ended by signal %d%s",
                WTERMSIG(status), WTERMSIG(status) == SIGKILL ? " (out of memory?)" : "");
    else
        err_set(&c->said.error, ERR_TOOL,
                "The process that did this ended without an answer (exit status %d)", WEXITSTATUS(status));
    serve_log(c, "error", c->said.error.msg);
    complete(c);
}

static void on_child(void *arg, pid_t pid, int status)
{
    struct call *c = arg;
    (void)pid;
    c->process.child = NULL;
    c->process.reaped = true;
    c->process.exit_status = status;
    if (c->process.closed)
        died(c);
}

static void after_cancel(struct call *c);

static void on_pipe_end(struct call *c)
{
    loop_drop(&c->process.source);
    c->process.closed = true;
    if (c->cancelled)
        after_cancel(c);
    else if (c->process.reaped)
        died(c);
}

/* True when the call has been completed. */
static bool take_frames(struct call *c)
{
    struct frame head;
    size_t at = 0;
    while (c->process.in.len - at >= sizeof head) {
        memcpy(&head, c->process.in.data + at, sizeof head);
        if (c->process.in.len - at - sizeof head < head.n)
            break;
        at += sizeof head;
        if (head.kind == FRAME_DONE) {
            c->cancelled ? after_cancel(c) : complete(c);
            return true;
        }
        char *end = c->process.in.data + at + head.n, behind = *end;
        *end = '\0';
        serve_said(c, head.kind, (struct span){c->process.in.data + at, head.n});
        *end = behind;
        at += head.n;
    }
    if (at > 0)
        buf_consume(&c->process.in, at);
    return false;
}

static void on_pipe(void *arg, int events)
{
    struct call *c = arg;
    ssize_t n;
    (void)events;
    do {
        buf_reserve(&c->process.in, READ_STEP);
        n = read(c->process.pipe, c->process.in.data + c->process.in.len, READ_STEP);
        if (n > 0)
            c->process.in.len += (size_t)n;
    } while (n == READ_STEP);
    int failed = n < 0 ? errno : 0;
    if (!take_frames(c) && (n == 0 || (failed && failed != EAGAIN && failed != EINTR)))
        on_pipe_end(c);
}

/* ---- beginning ---- */

static void on_tick(void *arg)
{
    struct serve *s = arg;
    bool more = false;
    for (struct call *c = s->calls.first; c; c = c->next) {
        if (c->process.pid > 0 && c->asks.token.s && !c->silent)
            serve_progress(c);
        more = more || (c->asks.token.s && c->tool && !c->silent);
    }
    if (more)
        loop_timer_set(s->calls.tick, TICK_MS);
    else
        loop_drop(&s->calls.tick);
}

/* -1: no process can be had now. */
static int begin(struct call *c)
{
    struct serve *s = c->serve;
    int ends[2];
    serve_have_server(c);
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -1;
    pid_t pid = loop_fork(s->loop);
    if (pid == 0)
        serve_work(c, ends[1]);
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return -1;
    }
    c->process.pid = pid;
    c->process.pipe = ends[0];
    c->process.closed = c->process.reaped = false;
    c->process.started_ms = now_ms();
    s->calls.n_workers++;
    if (c->lane)
        c->lane->taken = true;
    io_set_nonblock(c->process.pipe, true);
    c->process.source = loop_fd(s->loop, c->process.pipe, LOOP_READ, on_pipe, c);
    c->process.child = loop_child(s->loop, pid, on_child, c);
    if (c->asks.token.s && !s->calls.tick)
        s->calls.tick = loop_timer(s->loop, TICK_MS, on_tick, s);
    return 0;
}

static void on_retry(void *arg)
{
    struct serve *s = arg;
    loop_drop(&s->calls.retry);
    serve_schedule(s);
}

static void no_process(struct call *c)
{
    err_set(&c->said.error, ERR_TOOL, "No process can be started for this: %s; end some of those that run",
            err_text(errno));
    complete(c);
}

static struct call *next_to_begin(const struct serve *s)
{
    struct call *c = s->calls.first;
    /* One that has been forgotten is in the list no more. NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
    while (c && (c->process.pid > 0 || !c->task || (c->lane && c->lane->taken)))
        c = c->next;
    return c;
}

void serve_schedule(struct serve *s)
{
    if (s->calls.retry || s->calls.scheduling)
        return;
    s->calls.scheduling = true;
    for (struct call *c;
         s->calls.n_workers < SERVE_WORKERS_MAX && !s->calls.retry && (c = next_to_begin(s)) != NULL;) {
        if (begin(c) == 0)
            continue;
        if (s->calls.n_workers == 0)
            no_process(c); /* nothing of ours that will end makes room */
        else
            s->calls.retry = loop_timer(s->loop, RETRY_MS, on_retry, s);
    }
    s->calls.scheduling = false;
}

/* Whether another command has the shell for a while already: one that comes at the same time waits its turn,
 * but whoever comes later has most often given the first up, without a word to us. */
static bool finds_it_busy(struct call *c)
{
    struct buf command BUF_AUTO = BUF_INIT;
    struct span text;
    struct call *first = c->serve->calls.first;
    while (first && !(first->process.pid > 0 && first->lane == c->lane))
        first = first->next;
    long long ms = first ? now_ms() - first->process.started_ms : 0;
    if (c->tool->run != mcp_shell_run || !first || first->silent || ms < BUSY_MS)
        return false;
    if (c->serve->offer->interrupt_busy) {
        serve_cancel(first);
        return false;
    }
    if (first->asks.arguments.s && json_member(first->asks.arguments, "command", &text, NULL))
        json_string_text(text, &command);
    err_set(&c->said.error, ERR_TOOL,
            "The shell is busy with '%.60s%s' for %lld s: shell_interrupt ends that, shell_wait waits for "
            "it, shell_new "
            "starts another shell",
            buf_str(&command), command.len > 60 ? "..." : "", ms / 1000);
    return true;
}

void serve_call_submit(struct call *c)
{
    struct serve *s = c->serve;
    struct span session;
    struct buf name BUF_AUTO = BUF_INIT;
    c->task = c->tool->run;
    if (c->tool->turn == TURN_BROWSER || c->tool->turn == TURN_COMPUTER)
        c->lane = lane_enter(s, c->tool->turn == TURN_BROWSER ? "browser" : "computer");
    if (c->tool->turn == TURN_SHELL) {
        if (!c->asks.arguments.s || !json_member(c->asks.arguments, "session", &session, NULL) ||
            !json_string_text(session, &name) || name.len == 0)
            buf_adds(&name, s->made.shell ? s->made.shell : "");
        c->lane = lane_enter(s, buf_str(&name));
        if (finds_it_busy(c)) {
            complete(c);
            return;
        }
    }
    serve_schedule(s);
}

void serve_task(struct serve *s, int (*task)(struct work *w, struct err *err), const char *session,
                long long job)
{
    struct origin nobody = {.client = &s->client};
    struct call *c = serve_call_new(s, &nobody, (struct span){"", 0});
    c->task = task;
    c->silent = true;
    c->said.session = session ? mem_strdup(session) : NULL;
    c->said.job = job;
    serve_schedule(s);
}

/* What a cancelled call has made is known by now. */
static void after_cancel(struct call *c)
{
    struct serve *s = c->serve;
    stop_listening(c);
    serve_nothing(s, &c->origin);
    serve_call_end(c);
    serve_schedule(s);
    s->owner->advanced(s);
}

void serve_cancel(struct call *c)
{
    if (c->silent)
        return;
    c->silent = true;
    c->cancelled = c->process.pid > 0;
    if (c->process.pid == 0)
        after_cancel(c);
    else if (!c->process.reaped)
        kill(c->process.pid,
             SIGTERM); /* which is put off while a shell or a job is being started: see serve_work.c */
}
