/* One session of the browser tool: a browser, what it has open, and the actions that are asked of it, one
 * after the other.
 *
 * An action is a list of steps. A step asks the browser for one thing; its answer leads to the next step.
 * Behind its own steps come those of every action: to wait until what it has set in motion has come to rest,
 * to dismiss a cookie banner, to read the page, to answer. A step that fails leads straight to the reading:
 * the answer says what went wrong, and shows the page as it is. */
#ifndef APPLETS_WEB_BROWSER_WEB_H
#define APPLETS_WEB_BROWSER_WEB_H

#include <stdbool.h>

#include "browser.h"
#include "emulate.h"
#include "page_tree.h"
#include "rpc.h"
#include "tab.h"
#include "web_types.h"

#define WEB_WIDTH 1280
#define WEB_HEIGHT 1080

struct action;
typedef void (*step_fn)(struct action *a);

/* The element that was clicked last. */
struct pointer {
    char *session; /* NULL: none */
    long long backend;
    int tab;
    unsigned loads; /* of its tab then */
};

struct web {
    struct loop *loop;
    struct browser browser;
    struct tabs tabs;
    char *context;         /* id of its browser context */
    struct page_tree tree; /* as last shown */
    struct pointer pointer;
    struct action *first, **last;
    bool busy; /* the first one has begun */
    bool over; /* the browser has ended, or is to; `end` says how */
    struct err end;
    struct loop_source *patience; /* with a browser that has hung up, and lives */
    bool closing;
    struct emulated emulated;
    bool devtools; /* web_devtools may be used */
};

/* What an action works on. */
struct element {
    char *session;
    long long backend;
    char *object;          /* its JavaScript object there */
    double x, y;           /* where the mouse goes, in the viewport */
    double from_x, from_y; /* and what it drags from there */
};

/* How an action has gone wrong, if it has. */
struct action_fault {
    bool failed;
    struct err err;   /* what went wrong */
    struct err doubt; /* and what will have, if nothing better is known when the page has come to rest */
    bool was_stuck;   /* the current page, when it began */
};

/* An action that opens a document. */
struct action_open {
    const step_fn
        *retry;    /* ask for the page once more, should it crash before a document has come; NULL: nothing */
    bool again;    /* that has been done */
    int overtaken; /* how often another document came in the place of the one that was asked for */
    bool other_scheme; /* http and https, of which neither was given, are tried the other way round */
};

/* The question that is open, or the last one. */
struct action_question {
    bool lax;           /* it may fail, */
    struct err why;     /* and did */
    struct span result; /* valid during the step that it leads to; s == NULL where it failed */
    size_t told;        /* of several */
};

/* Coming to rest (idle.c). */
struct action_rest {
    bool settling;
    bool flushing; /* the page has been asked, and has not answered */
    bool stirred;  /* something has happened since it was asked */
    int rounds, moves;
    long long until_ms; /* web_wait gives up */
    long long began_ms, moved_ms, flushed_ms;
    long long timers_ms;        /* when the last of the timers that it has set is due */
    const struct tab *seen_tab; /* as it was when it was last looked at; only compared */
    unsigned loads;
    enum navigation seen_navigation;
};

/* Reading (read.c). */
struct action_reading {
    struct page_reader *reader;
    struct read_call *calls;
    char **sessions; /* of its targets */
    size_t n_sessions;
    int times;
    bool cookies_done, consenting; /* a banner was sent away; it is about to be, which may fail */
};

struct action {
    struct action *next;
    struct web *web;
    struct rpc_call *call; /* NULL: its client has gone */
    struct web_params params;
    struct {
        const step_fn *now;  /* ends with NULL */
        const step_fn *tail; /* what follows them, whatever became of them */
        size_t at;
        bool bare; /* without what shows the page: it answers with what `answer` holds */
    } steps;
    struct action_fault fault;
    struct action_open open;
    struct action_question asked;
    struct buf answer;
    struct buf console; /* what is heard of it meanwhile */
    struct element element;
    struct {
        struct loop_source *timer;
        void (*passed)(struct action *a);
    } limit;
    struct {
        size_t left; /* that are not dealt with yet */
        bool awaited;
    } keys; /* typing (keys.c) */
    struct action_rest rest;
    struct action_reading reading;
};

/* ---- for the methods ---- */

/* Queues an action with these steps, which answers the call; takes the params. */
void web_act(struct web *web, struct rpc_call *call, struct web_params *params, const step_fn *steps,
             bool bare);

/* The browser has ended: fails all that is open and to come. */
void web_end(struct web *web, const struct err *why);

/* tabs.changed */
void web_changed(void *arg);

/* ---- action.c: for the steps, each of which ends with one of these ---- */

/* Asks the page (or a session, "" the browser) and goes on with its answer; an error ends the action.
 * `params` is an object's text, "": none. The lax one goes on with an error as well. */
void step_ask(struct action *a, const char *session, const char *method, const struct buf *params,
              int limit_ms);
void step_ask_lax(struct action *a, const char *session, const char *method, const struct buf *params,
                  int limit_ms);
void step_next(struct action *a);
/* Leaves the action's other steps out; puts others in their place. */
void step_done(struct action *a);
void step_branch(struct action *a, const step_fn *steps);
/* Ends the action's own steps; ERR_TOOL. */
void step_fail(struct action *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* ---- common steps (idle.c, read.c) ---- */

/* Waits until the page has come to rest. */
void step_await_idle(struct action *a);
/* Looks at the page again; goes on when nothing is missing any more. */
void idle_look(struct action *a);
/* Reads the page into web->tree; an action that has failed is answered all the same. */
void step_read(struct action *a);
void read_forget(struct action *a);

/* ---- action.c: the rest ---- */

/* Runs the step that the action is at; behind its last one what follows. */
void action_run(struct action *a);

/* After `limit_ms` calls too_late, unless something else comes first (0: nothing is waited for any more). */
void action_limit(struct action *a, int limit_ms, void (*too_late)(struct action *a));

/* The page has crashed before a document came (its process was that of a page that has just been closed or
 * killed) and is asked for once more: it gets another one. False: nothing of the kind. */
bool action_retry(struct action *a);

/* The current page's session; NULL when there is none. */
const char *page_session(const struct action *a);

extern const step_fn go_steps[], click_steps[], type_steps[], submit_steps[], select_steps[], press_steps[],
    scroll_steps[], back_steps[], forward_steps[], refresh_steps[], screenshot_steps[], evaluate_steps[],
    text_steps[], tabs_steps[], tab_steps[], wait_steps[], find_steps[], pdf_steps[], upload_steps[],
    dialog_steps[], tell_steps[], network_steps[], downloads_steps[], console_steps[], state_steps[],
    devtools_steps[];

#endif
