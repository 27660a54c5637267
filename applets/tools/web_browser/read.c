/* Reading the page, and what is done with what was read: a cookie banner is sent away, once an action. */
#include <stdlib.h>
#include <string.h>

#include "mem.h"
#include "web.h"

#define READ_MS 20000     /* without any answer */
#define READINGS_MAX 4    /* of a page that changes under the reader */
#define EMPTY_WAIT_MS 100 /* for a page of which nothing is to be seen yet */
#define CONSENT "Accept all"

/* A question of the reader's; an action that ends meanwhile leaves it to itself. */
struct read_call {
    struct read_call *next;
    struct action *action; /* NULL: nobody's any more */
    unsigned tag;
};

void read_forget(struct action *a)
{
    for (struct read_call *c = a->reading.calls; c; c = c->next)
        c->action = NULL;
    a->reading.calls = NULL;
    page_reader_free(a->reading.reader);
    a->reading.reader = NULL;
    for (size_t i = 0; i < a->reading.n_sessions; i++)
        free(a->reading.sessions[i]);
    free(a->reading.sessions);
    a->reading.sessions = NULL;
    a->reading.n_sessions = 0;
}

/* ---- the targets: a page and its frames, as they were when the reading began ---- */

static size_t parent_index(const struct tab *t, const struct frame *frame)
{
    size_t i = 1;
    for (const struct frame *f = t->frames; f && f != frame; f = f->next, i++)
        if (strcmp(f->session, frame->parent) == 0)
            return i;
    return 0;
}

static void begin_reading(struct action *a, const struct tab *t)
{
    const struct page_view view = {a->web->tabs.window.width, a->web->tabs.window.height};
    size_t n = 1;
    for (const struct frame *f = t->frames; f; f = f->next)
        n++;
    struct page_target *targets MEM_AUTO = mem_zalloc(n * sizeof *targets);
    a->reading.sessions = mem_alloc(n * sizeof *a->reading.sessions);
    a->reading.n_sessions = n;
    a->reading.sessions[0] = mem_strdup(t->session);
    targets[0].parent = -1;
    n = 1;
    for (const struct frame *f = t->frames; f; f = f->next, n++) {
        a->reading.sessions[n] = mem_strdup(f->session);
        targets[n] = (struct page_target){
            .parent = (int)parent_index(t, f), .frame_id = f->target, .number = f->number};
    }
    a->reading.reader = page_reader_new(&view, targets, n);
}

/* ---- the cookie banner ---- */

static bool is_pressable(const struct page_tree *tree, const struct page_node *node)
{
    return page_tree_is(tree, node, "button") || page_tree_is(tree, node, "link");
}

/* ---- reading ---- */

static void pump(struct action *a);
static void read_again(struct action *a);

static void unreadable(struct action *a, const char *why)
{
    page_tree_release(&a->web->tree);
    if (!a->fault.failed) {
        a->fault.failed = true;
        err_set(&a->fault.err, ERR_TOOL, "%s", why);
    }
    step_next(a);
}

static void silent(struct action *a)
{
    read_forget(a);
    if (a->web->tabs.first)
        a->web->tabs.first->is.stuck = true;
    unreadable(a, "the page does not respond: a script of its own keeps it busy; web_go opens another one");
}

static void have_read(struct action *a)
{
    struct web *web = a->web;
    struct err err;
    int result = page_reader_finish(a->reading.reader, &web->tree, &err);
    read_forget(a);
    action_limit(a, 0, NULL);
    if ((result < 0 || web->tree.at.len == 0) && ++a->reading.times < READINGS_MAX) {
        action_limit(a, EMPTY_WAIT_MS, read_again);
        return;
    }
    if (result < 0) {
        unreadable(a, err.msg);
        return;
    }
    const struct page_node *consent = page_tree_find_named(&web->tree, CONSENT);
    if (consent && !a->reading.cookies_done && is_pressable(&web->tree, consent)) {
        a->reading.cookies_done = a->reading.consenting = true;
        a->params.element_id = consent->id;
        step_branch(a, click_steps);
        return;
    }
    step_next(a);
}

static void read_answered(void *arg, struct span result, const struct err *err)
{
    struct read_call *c = arg;
    struct action *a = c->action;
    (void)err;
    if (a) {
        for (struct read_call **at = &a->reading.calls; *at; at = &(*at)->next)
            if (*at == c) {
                *at = c->next;
                break;
            }
        page_reader_answer(a->reading.reader, c->tag, result); /* none, where it failed */
    }
    free(c);
    if (a)
        pump(a);
}

static void send_call(struct action *a, const struct page_call *call)
{
    struct read_call *c = mem_alloc(sizeof *c);
    *c = (struct read_call){.next = a->reading.calls, .action = a, .tag = call->tag};
    a->reading.calls = c;
    cdp_call(a->web->browser.cdp, a->reading.sessions[call->target], call->method, call->params,
             read_answered, c);
}

static void pump(struct action *a)
{
    struct page_call call;
    while (page_reader_next(a->reading.reader, &call))
        send_call(a, &call);
    if (page_reader_done(a->reading.reader))
        have_read(a);
    else
        action_limit(a, READ_MS, silent);
}

static void read_again(struct action *a)
{
    const struct tab *t = a->web->tabs.first;
    if (!t) {
        unreadable(a, "no page is open; web_go opens one");
    } else if (t->is.crashed) {
        unreadable(a, "the page has crashed; load it again with web_refresh, or another one with web_go");
    } else if (t->is.stuck) {
        silent(a);
    } else {
        begin_reading(a, t);
        pump(a);
    }
}

void step_read(struct action *a)
{
    a->reading.times = 0;
    a->reading.consenting = false;
    read_again(a);
}
