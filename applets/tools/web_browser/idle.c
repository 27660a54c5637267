/* Waiting until a page is idle: it has come to rest.
 *
 * What an action sets in motion is told by the browser before the page answers the next question: a document
 * that is asked for, a new tab, a request of a script. So the page is asked to let what waits in it run, and
 * to say when it has. If nothing is under way then, that is the end. Otherwise the wait goes on, with bounds:
 * long for a document, which must come; short for what a page only loads besides; and then the page is asked
 * again, because what has come may set other things in motion. Nothing is waited for that the action has not
 * caused. */
#include <stdlib.h>
#include <string.h>

#include "io.h"
#include "mem.h"
#include "web.h"

#define DOCUMENT_MS 30000 /* for a document to come */
#define PARSE_MS 10000    /* for what has come to be read to its end */
#define REST_MS 2000      /* for what is loaded besides */
#define TIMER_MS 1000     /* for a timer */
#define REQUEST_MS 3000   /* for a document that a page wants to be asked for by the browser */
#define FLUSH_MS 10000    /* for the page to answer */
#define ROUNDS_MAX 40     /* requests that lead to others for ever, */
#define MOVES_MAX 60      /* and documents: three moves each */

/* Promises and messages run first, then timers that are due. The answer says how long those take that are not
 * (tab_scripts.h). */
static const char flush_params[] =
    "{\"expression\":\"new Promise(r=>setTimeout(()=>r(setTimeout(()=>0,0,'%s'))))\","
    "\"awaitPromise\":true,\"returnByValue\":true}";

static int timers_left(struct span result)
{
    struct span value;
    struct buf text BUF_AUTO = BUF_INIT;
    if (!json_member(result, "result", &value, NULL) || !member_text(value, "value", &text) ||
        strncmp(buf_str(&text), "ms:", 3) != 0)
        return 0;
    long ms = strtol(text.data + 3, NULL, 10);
    return ms <= 0 ? 0 : ms < TIMER_MS ? (int)ms + 1 : TIMER_MS;
}

static void flushed(void *arg, struct span result, const struct err *err)
{
    struct action *a = arg;
    a->rest.flushing = false;
    if (!err) /* otherwise another document has come meanwhile, or the tab is closed */
        a->rest.timers_ms = now_ms() + timers_left(result);
    idle_look(a);
}

static void flush(struct action *a)
{
    char *params MEM_AUTO = mem_printf(flush_params, a->web->tabs.token);
    a->rest.flushing = true;
    a->rest.stirred = false;
    a->rest.rounds++;
    cdp_forget(a->web->browser.cdp, a);
    a->rest.flushed_ms = now_ms();
    cdp_call(a->web->browser.cdp, page_session(a), "Runtime.evaluate", (struct span){params, strlen(params)},
             flushed, a);
}

static void at_rest(struct action *a)
{
    a->rest.settling = false;
    a->rest.flushing = false;
    cdp_forget(a->web->browser.cdp, a);
    action_limit(a, 0, NULL);
    step_next(a);
}

static void look_again(struct action *a)
{
    idle_look(a);
}

/* How long what is under way may still take; 0: nothing is, or its time is over. */
static long long time_left(struct action *a, struct tab *t)
{
    long long now = now_ms(), left = 0;
    if (t->navigation == NAVIGATION_REQUESTED)
        left = a->rest.moved_ms + REQUEST_MS - now;
    else if (t->navigation == NAVIGATION_STARTED)
        left = a->rest.began_ms + DOCUMENT_MS - now;
    else if (!t->is.parsed)
        left = a->rest.moved_ms + PARSE_MS - now;
    else if (!t->is.loaded || t->loading.n > 0 || t->requests.n > 0)
        left = a->rest.moved_ms + REST_MS - now;
    else if (!a->web->tabs.notes.failure && a->rest.timers_ms > now && now < a->rest.moved_ms + REST_MS)
        left = a->rest.timers_ms - now;
    if (downloads_awaited(&a->web->tabs.downloads) && now + left < a->rest.began_ms + DOCUMENT_MS)
        left = a->rest.began_ms + DOCUMENT_MS - now;
    if (t->navigation == NAVIGATION_NONE && t->due_ms > now + left && now < a->rest.began_ms + DOCUMENT_MS)
        left = t->due_ms - now;
    return left > 0 ? left : 0;
}

static void note_moves(struct action *a, const struct tab *t)
{
    if (t->loads != a->rest.loads)
        a->open.retry = NULL;
    if (t == a->rest.seen_tab && t->loads == a->rest.loads && t->navigation == a->rest.seen_navigation)
        return;
    if (t != a->rest.seen_tab)
        a->rest.flushing = false; /* that was another page's answer */
    a->rest.seen_tab = t;
    a->rest.loads = t->loads;
    a->rest.seen_navigation = t->navigation;
    a->rest.moved_ms = now_ms();
    a->rest.moves++;
    a->rest.stirred = true;
}

static void never_came(struct action *a, struct tab *t)
{
    if (t->navigation == NAVIGATION_STARTED && !a->fault.failed) {
        a->fault.failed = true;
        err_set(&a->fault.err, ERR_TOOL,
                "the page that this leads to has not answered within %d s; this is still "
                "the one before",
                DOCUMENT_MS / 1000);
    }
    t->navigation = NAVIGATION_NONE;
}

void idle_look(struct action *a)
{
    struct tab *t = a->web->tabs.first;
    if (t)
        note_moves(a, t);
    if (!t || t->is.crashed || t->is.stuck || a->rest.moves > MOVES_MAX) {
        at_rest(a);
        return;
    }
    long long left = time_left(a, t), now = now_ms();
    if (t->navigation != NAVIGATION_NONE && left == 0)
        never_came(a, t);
    if (left > 0) {
        a->rest.stirred = true;
    } else if (a->rest.flushing) {
        left = a->rest.flushed_ms + FLUSH_MS - now;
        if (left <= 0) {
            t->is.stuck = true;
            at_rest(a);
            return;
        }
    } else if (a->rest.stirred && a->rest.rounds < ROUNDS_MAX && now < a->rest.began_ms + DOCUMENT_MS) {
        flush(a);
        left = FLUSH_MS;
    } else {
        at_rest(a);
        return;
    }
    action_limit(a, (int)left, look_again);
}

void step_await_idle(struct action *a)
{
    a->rest.settling = true;
    a->rest.flushing = false;
    a->rest.stirred = true;
    a->rest.rounds = a->rest.moves = 0;
    a->rest.timers_ms = 0;
    a->rest.began_ms = a->rest.moved_ms = now_ms();
    a->rest.seen_tab = a->web->tabs.first;
    if (a->rest.seen_tab) {
        if (a->rest.loads != a->rest.seen_tab->loads)
            a->open.retry = NULL; /* a document has come already */
        a->rest.loads = a->rest.seen_tab->loads;
        a->rest.seen_navigation = a->rest.seen_tab->navigation;
    }
    idle_look(a);
}
