/* Calls: when each is begun, what its process says, how it ends. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io.h"
#include "mem.h"
#include "serve.h"

#define TICK_MS 1000
#define READ_STEP 65536
#define RETRY_MS 20 /* where no process could be had */

/* A session in which calls are done one after the other. */
struct lane {
    struct lane *next;
    char *key;
    size_t users; /* calls that stand in it, or will */
    bool taken;   /* by the one that is at work */
};

/* ---- names ---- */

static void names_add(struct names *names, const char *name)
{
    names->list = mem_realloc(names->list, (names->n + 1) * sizeof *names->list);
    names->list[names->n++] = mem_strdup(name);
}

static void names_remove(struct names *names, const char *name)
{
    for (size_t i = 0; i < names->n; i++) {
        if (strcmp(names->list[i], name) != 0)
            continue;
        free(names->list[i]);
        names->list[i] = names->list[--names->n];
        return;
    }
}

/* ---- lanes ---- */

static struct lane *lane_enter(struct serve *s, const char *key)
{
    struct lane *lane = s->lanes;
    while (lane && strcmp(lane->key, key) != 0)
        lane = lane->next;
    if (!lane) {
        lane = mem_zalloc(sizeof *lane);
        lane->key = mem_strdup(key);
        lane->next = s->lanes;
        s->lanes = lane;
    }
    lane->users++;
    return lane;
}

static void lane_leave(struct serve *s, struct lane *lane)
{
    struct lane **at = &s->lanes;
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
    c->text = mem_dup(text.s, text.n);
    c->n_text = text.n;
    c->origin = *o;
    if (o->id.s)
        c->origin.id.s = c->text + (o->id.s - text.s);
    c->pipe = -1;
    buf_init(&c->in, BUF_NO_MAX);
    buf_init(&c->structured, BUF_NO_MAX);
    buf_init(&c->plain, BUF_NO_MAX);
    buf_init(&c->image, BUF_NO_MAX);
    c->link = s->last;
    *s->last = c;
    s->last = &c->next;
    s->n_calls++;
    s->call_bytes += text.n;
    return c;
}

/* The process, whether it has ended or not, has nothing more to say. */
static void stop_listening(struct call *c)
{
    loop_drop(&c->source);
    loop_drop(&c->child);
    io_close(&c->pipe);
    if (c->pid > 0)
        c->serve->n_workers--;
    if (c->pid > 0 && c->lane)
        c->lane->taken = false;
    c->pid = 0;
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
        s->last = c->link;
    s->n_calls--;
    s->call_bytes -= c->n_text;
    buf_release(&c->in);
    buf_release(&c->structured);
    buf_release(&c->plain);
    buf_release(&c->image);
    free(c->session);
    free(c->status);
    free(c->text);
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

struct call *serve_call_find(struct serve *s, struct span id)
{
    for (struct call *c = s->calls; c; c = c->next)
        if (!c->silent && c->origin.id.s && same_id(c->origin.id, id))
            return c;
    return NULL;
}

/* ---- what a process says ---- */

static struct job_note *job_of(struct serve *s, long long pid)
{
    struct job_note **at = &s->jobs.first;
    while (*at && (*at)->pid != pid)
        at = &(*at)->next;
    if (!*at) {
        *at = mem_zalloc(sizeof **at);
        (*at)->pid = pid;
        buf_init(&(*at)->out[0], BUF_NO_MAX);
        buf_init(&(*at)->out[1], BUF_NO_MAX);
    }
    return *at;
}

static void job_forget(struct serve *s, long long pid)
{
    struct job_note **at = &s->jobs.first;
    while (*at && (*at)->pid != pid)
        at = &(*at)->next;
    struct job_note *note = *at;
    if (!note)
        return;
    *at = note->next;
    buf_release(&note->out[0]);
    buf_release(&note->out[1]);
    free(note);
}

static long long number_in(struct span data)
{
    long long number = 0;
    if (data.n == sizeof number)
        memcpy(&number, data.s, sizeof number);
    return number;
}

static void take_job_output(struct call *c, struct span data)
{
    struct frame_output head;
    memcpy(&head, data.s, sizeof head);
    struct job_note *note = job_of(c->serve, head.pid);
    const char *text = data.s + sizeof head;
    job_note_add(note, 0, (struct span){text, head.n_out});
    job_note_add(note, 1, (struct span){text + head.n_out, data.n - sizeof head - head.n_out});
    note->seq = head.seq;
}

static void replace(char **old, const char *text)
{
    free(*old);
    *old = mem_strdup(text);
}

/* Calls of the default session that came before it had a name wait where those that name it will. */
static void take_made(struct call *c, const char *name, bool is_default)
{
    struct serve *s = c->serve;
    names_add(&s->sessions, name);
    if (!is_default)
        return;
    replace(&s->shell, name);
    replace(&c->lane->key, name);
}

static void take_closed(struct call *c, const char *name)
{
    struct serve *s = c->serve;
    names_remove(&s->sessions, name);
    if (!s->shell || strcmp(s->shell, name) != 0)
        return;
    free(s->shell);
    s->shell = NULL;
}

static void take_browser(struct serve *s, const char *name)
{
    free(s->browser);
    s->browser = *name ? mem_strdup(name) : NULL;
}

/* `data` has a NUL behind. */
static void take_frame(struct call *c, char kind, struct span data)
{
    switch (kind) {
    case FRAME_STATUS:
        replace(&c->status, data.s);
        break;
    case FRAME_LOG:
        serve_log(c, data.s, data.s + strlen(data.s) + 1);
        break;
    case FRAME_MADE:
    case FRAME_MADE_DEFAULT:
        take_made(c, data.s, kind == FRAME_MADE_DEFAULT);
        break;
    case FRAME_CLOSED:
        take_closed(c, data.s);
        break;
    case FRAME_BROWSER:
        take_browser(c->serve, data.s);
        break;
    case FRAME_JOB:
        job_of(c->serve, number_in(data))->ours = true;
        break;
    case FRAME_JOB_TOLD:
    case FRAME_JOB_ENDED:
        c->job = number_in(data);
        c->job_ended = kind == FRAME_JOB_ENDED;
        break;
    case FRAME_JOB_OUTPUT:
        take_job_output(c, data);
        break;
    case FRAME_STRUCTURED:
        buf_add(&c->structured, data.s, data.n);
        break;
    case FRAME_TEXT:
        buf_add(&c->plain, data.s, data.n);
        break;
    case FRAME_IMAGE:
        buf_add(&c->image, data.s, data.n);
        break;
    case FRAME_ERROR:
        if (err_take(&c->error, data.s, data.n) < 0)
            err_set(&c->error, ERR_INTERNAL, "the process that did the work said what is no error");
        break;
    default:
        break;
    }
}

/* ---- ending ---- */

/* What the answer tells of a job has been told. */
static void told(const struct call *c)
{
    if (c->job_ended)
        job_forget(c->serve, c->job);
    if (c->job == 0 || c->job_ended)
        return;
    struct job_note *note = job_of(c->serve, c->job);
    for (int i = 0; i < 2; i++) {
        buf_release(&note->out[i]);
        note->omitted[i] = 0;
    }
}

static void complete(struct call *c)
{
    struct serve *s = c->serve;
    stop_listening(c);
    if (c->silent) {
        if (c->origin.id.s)
            serve_nothing(s, &c->origin);
    } else {
        if (c->error.code == 0)
            told(c);
        serve_tool_result(s, c);
    }
    serve_call_end(c);
    serve_schedule(s);
    s->owner->advanced(s);
}

/* It has gone, and not in the way it should. */
static void died(struct call *c)
{
    int status = c->exit_status;
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
        err_set(&c->error, ERR_TOOL, "This took too long and was given up: ask for less at once");
    else if (WIFSIGNALED(status))
        err_set(&c->error, ERR_TOOL, "The process that did this was ended by signal %d%s", WTERMSIG(status),
                WTERMSIG(status) == SIGKILL ? " (out of memory?)" : "");
    else
        err_set(&c->error, ERR_TOOL, "The process that did this ended without an answer (exit status %d)",
                WEXITSTATUS(status));
    serve_log(c, "error", c->error.msg);
    complete(c);
}

static void on_child(void *arg, pid_t pid, int status)
{
    struct call *c = arg;
    (void)pid;
    c->child = NULL;
    c->reaped = true;
    c->exit_status = status;
    if (c->closed)
        died(c);
}

static void after_cancel(struct call *c);

static void on_pipe_end(struct call *c)
{
    loop_drop(&c->source);
    c->closed = true;
    if (c->cancelled)
        after_cancel(c);
    else if (c->reaped)
        died(c);
}

/* True when the call has been completed. */
static bool take_frames(struct call *c)
{
    struct frame head;
    size_t at = 0;
    while (c->in.len - at >= sizeof head) {
        memcpy(&head, c->in.data + at, sizeof head);
        if (c->in.len - at - sizeof head < head.n)
            break;
        at += sizeof head;
        if (head.kind == FRAME_DONE) {
            c->cancelled ? after_cancel(c) : complete(c);
            return true;
        }
        char *end = c->in.data + at + head.n, behind = *end;
        *end = '\0';
        take_frame(c, head.kind, (struct span){c->in.data + at, head.n});
        *end = behind;
        at += head.n;
    }
    if (at > 0)
        buf_consume(&c->in, at);
    return false;
}

static void on_pipe(void *arg, int events)
{
    struct call *c = arg;
    ssize_t n;
    (void)events;
    do {
        buf_reserve(&c->in, READ_STEP);
        n = read(c->pipe, c->in.data + c->in.len, READ_STEP);
        if (n > 0)
            c->in.len += (size_t)n;
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
    for (struct call *c = s->calls; c; c = c->next) {
        if (c->pid > 0 && c->token.s && !c->silent)
            serve_progress(c);
        more = more || (c->token.s && c->tool && !c->silent);
    }
    if (more)
        loop_timer_set(s->tick, TICK_MS);
    else
        loop_drop(&s->tick);
}

/* -1: no process can be had now. */
static int begin(struct call *c)
{
    struct serve *s = c->serve;
    int ends[2];
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
    c->pid = pid;
    c->pipe = ends[0];
    c->closed = c->reaped = false;
    c->started_ms = now_ms();
    s->n_workers++;
    if (c->lane)
        c->lane->taken = true;
    io_set_nonblock(c->pipe, true);
    c->source = loop_fd(s->loop, c->pipe, LOOP_READ, on_pipe, c);
    c->child = loop_child(s->loop, pid, on_child, c);
    if (c->token.s && !s->tick)
        s->tick = loop_timer(s->loop, TICK_MS, on_tick, s);
    return 0;
}

static void on_retry(void *arg)
{
    struct serve *s = arg;
    loop_drop(&s->retry);
    serve_schedule(s);
}

static void no_process(struct call *c)
{
    err_set(&c->error, ERR_TOOL, "No process can be started for this: %s; end some of those that run",
            err_text(errno));
    complete(c);
}

static struct call *next_to_begin(const struct serve *s)
{
    struct call *c = s->calls;
    /* One that has been forgotten is in the list no more. NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
    while (c && (c->pid > 0 || !c->task || (c->lane && c->lane->taken)))
        c = c->next;
    return c;
}

void serve_schedule(struct serve *s)
{
    if (s->retry || s->scheduling)
        return;
    s->scheduling = true;
    for (struct call *c; s->n_workers < SERVE_WORKERS_MAX && !s->retry && (c = next_to_begin(s)) != NULL;) {
        if (begin(c) == 0)
            continue;
        if (s->n_workers == 0)
            no_process(c); /* nothing of ours that will end makes room */
        else
            s->retry = loop_timer(s->loop, RETRY_MS, on_retry, s);
    }
    s->scheduling = false;
}

void serve_call_submit(struct call *c)
{
    struct serve *s = c->serve;
    struct span session;
    struct buf name BUF_AUTO = BUF_INIT;
    c->task = c->tool->run;
    if (c->tool->turn == TURN_BROWSER)
        c->lane = lane_enter(s, "browser");
    if (c->tool->turn == TURN_SHELL) {
        if (!c->arguments.s || !json_member(c->arguments, "session", &session, NULL) ||
            !json_string_text(session, &name))
            buf_adds(&name, s->shell ? s->shell : "");
        c->lane = lane_enter(s, buf_str(&name));
    }
    serve_schedule(s);
}

void serve_task(struct serve *s, int (*task)(struct work *w, struct err *err), const char *session,
                long long job)
{
    struct origin nobody = {.revision = s->revision};
    struct call *c = serve_call_new(s, &nobody, (struct span){"", 0});
    c->task = task;
    c->silent = true;
    c->session = session ? mem_strdup(session) : NULL;
    c->job = job;
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
    c->cancelled = c->pid > 0;
    if (c->pid == 0)
        after_cancel(c);
    else if (!c->reaped)
        kill(c->pid,
             SIGTERM); /* which is put off while a shell or a job is being started: see serve_work.c */
}
