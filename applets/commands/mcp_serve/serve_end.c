/* How serving begins and ends: for a client at a pipe, and for each of those that come by HTTP. */
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "applet.h"
#include "mcp_tools.h"
#include "serve.h"

#define PATIENCE_MS 10000 /* for calls that are open when the input ends */
#define LEAVE_MS 4000     /* for what has to be ended, and for the last output */

/* ---- the end ---- */

/* Calls that somebody may still want an answer of. */
static bool is_busy(const struct serve *s)
{
    for (const struct call *c = s->calls.first; c; c = c->next)
        if (c->task)
            return true;
    return s->out.waiting.len > 0 && !s->out.ended;
}

static void out_of_patience(void *arg)
{
    struct serve *s = arg;
    if (s->end.begun)
        s->owner->over(s, EXIT_OK);
    else
        serve_finish(s);
}

/* A command that runs is left to the end of its session, or, where that is kept, to itself. Subscriptions end
 * with the server, which says so. */
static void end_calls(struct serve *s)
{
    s->calls.scheduling = true; /* nothing more is begun */
    for (struct call *c = s->calls.first, *next; c; c = next) {
        next = c->next;
        if (c->tool) {
            serve_cancel(c);
        } else if (!c->task) {
            serve_subscription_result(c);
            serve_call_end(c);
        }
    }
    s->calls.scheduling = false;
}

/* Shells, jobs, the browser and the desktop end side by side, each ended by a process of its own. */
static void end_what_was_made(struct serve *s)
{
    for (size_t i = 0; i < s->made.sessions.n; i++)
        serve_task(s, mcp_end_session, s->made.sessions.list[i], 0);
    if (s->made.browser)
        serve_task(s, mcp_end_browser, s->made.browser, 0);
    if (s->made.computer)
        serve_task(s, mcp_end_computer, s->made.computer, 0);
    for (const struct job_note *note = s->made.jobs.first; note; note = note->next)
        if (note->ours)
            serve_task(s, mcp_end_job, NULL, note->pid);
}

/* Nobody is there any more, or TERM. First all that runs ends, so that what it makes is known; then what was
 * made. */
void serve_finish(struct serve *s)
{
    if (s->end.begun)
        return;
    s->end.begun = true;
    loop_drop(&s->in.source);
    loop_drop(&s->in.timer);
    s->in.ended = true;
    loop_drop(&s->end.patience);
    s->end.patience = loop_timer(s->loop, LEAVE_MS, out_of_patience, s);
    end_calls(s);
    serve_advanced(s);
}

/* The client has begun to go: from now on there is so much time for the rest. */
static void be_patient(struct serve *s)
{
    if (!s->end.patience)
        s->end.patience = loop_timer(s->loop, PATIENCE_MS, out_of_patience, s);
}

/* When the last call has ended, and no other can come, that is the end. */
void serve_advanced(struct serve *s)
{
    if (!s->in.ended || s->calls.scheduling)
        return;
    if (s->end.begun && !s->end.swept && !s->calls.first) {
        s->end.swept = true;
        if (!s->offer->keep)
            end_what_was_made(s);
    }
    if (is_busy(s))
        be_patient(s);
    else if (!s->end.begun)
        serve_finish(s);
    else if (s->end.swept)
        s->owner->over(s, EXIT_OK);
}

/* ---- the begin, and the very end ---- */

static void take_line(struct serve *s, struct span line)
{
    serve_message(s, &s->client, NULL, line);
}

static void stop(struct serve *s, int status)
{
    loop_stop(s->loop, status);
}

const struct serve_owner serve_pipe_owner = {
    .line = take_line, .stalled = be_patient, .deaf = serve_finish, .advanced = serve_advanced, .over = stop};

void serve_begin(struct serve *s)
{
    s->pid = getpid();
    s->client.level = LEVEL_WARNING;
    s->out.fd = STDOUT_FILENO;
    s->calls.last = &s->calls.first;
    buf_init(&s->in.line, BUF_NO_MAX);
}

void serve_release(struct serve *s)
{
    s->calls.scheduling = true;
    while (s->calls.first) {
        struct call *c = s->calls.first;
        if (c->process.pid > 0 && !c->process.reaped)
            kill(c->process.pid, SIGKILL);
        serve_call_end(c);
    }
    loop_drop(&s->calls.tick);
    loop_drop(&s->calls.retry);
    loop_drop(&s->end.patience);
    loop_drop(&s->end.leaving);
    serve_forget_made(s);
}
