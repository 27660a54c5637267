/* From step to step of an action, and the questions that steps ask. */
#include <stdarg.h>
#include <stdio.h>

#include "web.h"

void action_run(struct action *a)
{
    step_fn step = a->steps.now[a->steps.at];
    if (step)
        step(a);
    else
        step_done(a);
}

void step_next(struct action *a)
{
    a->steps.at++;
    action_run(a);
}

void step_branch(struct action *a, const step_fn *steps)
{
    a->steps.now = steps;
    a->steps.at = 0;
    action_run(a);
}

bool action_retry(struct action *a)
{
    const struct tab *t = a->web->tabs.first;
    if (!t || !t->is.crashed || !a->open.retry || a->fault.failed)
        return false;
    a->open.again = true;
    step_branch(a, a->open.retry);
    return true;
}

void step_done(struct action *a)
{
    step_branch(a, a->steps.tail);
}

void step_fail(struct action *a, const char *fmt, ...)
{
    char text[ERR_MSG_MAX];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    action_limit(a, 0, NULL);
    if (!a->fault.failed && !a->reading.consenting) {
        a->fault.failed = true;
        err_set(&a->fault.err, ERR_TOOL, "%s", text);
    }
    a->asked.result = (struct span){0};
    step_done(a);
}

/* ---- time ---- */

static void on_timer(void *arg)
{
    struct action *a = arg;
    void (*too_late)(struct action * a) = a->limit.passed;
    action_limit(a, 0, NULL);
    too_late(a);
}

void action_limit(struct action *a, int limit_ms, void (*too_late)(struct action *a))
{
    a->limit.passed = too_late;
    if (limit_ms <= 0)
        loop_drop(&a->limit.timer);
    else if (a->limit.timer)
        loop_timer_set(a->limit.timer, limit_ms);
    else
        a->limit.timer = loop_timer(a->web->loop, limit_ms, on_timer, a);
}

static void no_answer(struct action *a)
{
    struct tab *t = a->web->tabs.first;
    cdp_forget(a->web->browser.cdp, a);
    if (t)
        t->is.stuck = true;
    step_fail(a, "the page does not respond: a script of its own keeps it busy; web_go opens another one");
}

/* ---- questions ---- */

static void answered(void *arg, struct span result, const struct err *err)
{
    struct action *a = arg;
    action_limit(a, 0, NULL);
    a->asked.result = result; /* none, where it failed */
    if (err)
        a->asked.why = *err;
    if (err && !a->asked.lax)
        step_fail(a, "%s", err->msg);
    else
        step_next(a);
}

static void ask(struct action *a, const char *session, const char *method, const struct buf *params,
                int limit_ms, bool lax)
{
    a->asked.lax = lax;
    a->asked.result = (struct span){0};
    if (!session) {
        step_fail(a, "no page is open; web_go opens one");
        return;
    }
    action_limit(a, limit_ms, no_answer);
    cdp_call(a->web->browser.cdp, session, method,
             params && params->len > 0 ? span_of(params) : (struct span){0}, answered, a);
}

void step_ask(struct action *a, const char *session, const char *method, const struct buf *params,
              int limit_ms)
{
    ask(a, session, method, params, limit_ms, false);
}

void step_ask_lax(struct action *a, const char *session, const char *method, const struct buf *params,
                  int limit_ms)
{
    ask(a, session, method, params, limit_ms, true);
}

const char *page_session(const struct action *a)
{
    return a->web->tabs.first ? a->web->tabs.first->session : NULL;
}
