#include "web.h"

#include <stdlib.h>
#include <string.h>

#include "mem.h"
#include "web_params.h"

#define OVERTAKEN_MAX 3

static void begin_next(struct web *web);

/* ---- the end of an action ---- */

/* Or the page keeps it, though it may have thrown its element away, as long as its document is shown. */
static void release_object(const struct action *a)
{
    struct buf params BUF_AUTO = BUF_INIT;
    if (!a->element.object || a->web->over)
        return;
    buf_addc(&params, '{');
    json_member_string(&params, "objectId", a->element.object);
    buf_addc(&params, '}');
    cdp_call(a->web->browser.cdp, a->element.session, "Runtime.releaseObject", span_of(&params), NULL, NULL);
}

static void action_free(struct action *a)
{
    if (a->web->browser.cdp)
        cdp_forget(a->web->browser.cdp, a);
    release_object(a);
    read_forget(a);
    loop_drop(&a->limit.timer);
    web_params_release(&a->params);
    if (a->web->tabs.traffic.console == &a->console)
        a->web->tabs.traffic.console = NULL;
    buf_release(&a->answer);
    buf_release(&a->console);
    free(a->element.session);
    free(a->element.object);
    free(a);
}

static void put_lines(struct buf *out, const struct web *web)
{
    if (web->tree.has_main)
        json_member_text(out, "main_content", buf_str(&web->tree.main), web->tree.main.len);
    else
        json_member_string(out, "main_content", NULL);
    json_member_text(out, "web_at", buf_str(&web->tree.at), web->tree.at.len);
}

static void put_page(struct buf *out, const struct action *a)
{
    const struct web *web = a->web;
    const struct tab *t = web->tabs.first;
    const char *url = t ? t->url : "about:blank";
    buf_addc(out, '{');
    json_member_text(out, "web_url", url, strcspn(url, "?"));
    if (web->tabs.dialogs.session) {
        char *dialog MEM_AUTO =
            mem_printf("Dialog: %s\nweb_dialog answers it", buf_str(&web->tabs.dialogs.shown));
        json_member_string(out, "main_content", NULL);
        json_member_string(out, "web_at", dialog);
    } else {
        put_lines(out, web);
    }
    json_member_string(out, "error", a->fault.failed ? a->fault.err.msg : NULL);
    if (web->tabs.notes.text.len > 0) {
        json_key(out, "notes");
        buf_addf(out, "[%s]", web->tabs.notes.text.data);
    }
    buf_addc(out, '}');
}

static void answer(struct action *a)
{
    struct rpc_call *call = a->call;
    if (!call)
        return;
    a->call = NULL;
    if (a->web->over) {
        rpc_fail(call, &a->web->end);
    } else if (a->steps.bare && a->fault.failed) {
        rpc_fail(call, &a->fault.err);
    } else {
        if (!a->steps.bare)
            put_page(&a->answer, a);
        rpc_result_take(call, &a->answer, 0);
    }
}

static void finish(struct action *a)
{
    struct web *web = a->web;
    web->first = a->next;
    if (!web->first)
        web->last = &web->first;
    web->busy = false;
    answer(a);
    action_free(a);
    begin_next(web);
}

/* ---- behind the steps of every action ---- */

/* The page before, which leads on by itself again and again, was quicker: it is asked for again, and at last
 * in another tab that takes its place. */
static bool was_overtaken(struct action *a)
{
    struct tab *t = a->web->tabs.first;
    if (!t || !t->awaited.overtaken || a->fault.failed || a->web->tabs.notes.failure ||
        a->open.overtaken == OVERTAKEN_MAX)
        return false;
    a->fault.was_stuck = ++a->open.overtaken == OVERTAKEN_MAX;
    a->fault.doubt.code = 0;
    awaited_set(&t->awaited, NULL);
    step_branch(a, go_steps);
    return true;
}

static void check_what_happened(struct action *a)
{
    const char *failure = a->web->tabs.notes.failure;
    if (action_retry(a) || was_overtaken(a))
        return;
    downloads_note(&a->web->tabs);
    if (!failure && a->fault.doubt.code != 0)
        failure = a->fault.doubt.msg;
    const struct tab *t = a->web->tabs.first;
    if (!a->fault.failed && failure) {
        a->fault.failed = true;
        err_set(&a->fault.err, ERR_TOOL, "%s", failure);
    } else if (!a->fault.failed && t && t->is.unreachable) {
        a->fault.failed = true;
        err_set(&a->fault.err, ERR_TOOL,
                "this leads to '%.300s', which can't be loaded; the page shown says why", t->url);
    }
    step_next(a);
}

/* What is last answers and frees it. */
static const step_fn tail_steps[] = {step_await_idle, check_what_happened, step_read, finish, NULL};
static const step_fn bare_tail_steps[] = {finish, NULL};

/* ---- the queue ---- */

/* A page that shows a dialog answers nothing else. */
static bool works_behind_dialog(const struct action *a)
{
    return a->steps.now == dialog_steps || a->steps.now == downloads_steps || a->steps.now == network_steps;
}

static void refuse_for_dialog(struct action *a)
{
    a->fault.failed = true;
    err_set(&a->fault.err, ERR_TOOL,
            "the page shows a dialog, which has to be answered first, with web_dialog: %s",
            buf_str(&a->web->tabs.dialogs.shown));
    finish(a);
}

static bool works_without_page(const struct action *a)
{
    return a->steps.now == go_steps || a->steps.now == refresh_steps || a->steps.now == tab_steps ||
           a->steps.now == tabs_steps;
}

static void begin_next(struct web *web)
{
    while (web->first && !web->busy) {
        struct action *a = web->first;
        web->busy = true;
        if (!a->call || web->over) { /* nobody wants it any more, or nothing can be had */
            finish(a);
            return; /* which has begun the next one */
        }
        tabs_watch(&web->tabs);
        if (web->tabs.first) {
            a->fault.was_stuck = web->tabs.first->is.stuck;
            web->tabs.first->is.stuck = false; /* it may have come round */
        }
        if (web->tabs.dialogs.session && !works_behind_dialog(a))
            refuse_for_dialog(a);
        else if (web->tabs.first && web->tabs.first->is.crashed && !works_without_page(a))
            step_fail(a, "the page has crashed; load it again with web_refresh, or another one with web_go");
        else
            action_run(a);
        return;
    }
}

static void abandoned(void *arg)
{
    ((struct action *)arg)->call = NULL; /* one that has begun runs on */
}

void web_act(struct web *web, struct rpc_call *call, struct web_params *params, const step_fn *steps,
             bool bare)
{
    struct action *a = mem_zalloc(sizeof *a);
    *a = (struct action){.web = web,
                         .call = call,
                         .params = *params,
                         .steps.now = steps,
                         .steps.tail = bare ? bare_tail_steps : tail_steps,
                         .steps.bare = bare};
    buf_init(&a->answer, BUF_NO_MAX);
    buf_init(&a->console, BUF_NO_MAX);
    rpc_on_abandon(call, abandoned, a);
    *web->last = a;
    web->last = &a->next;
    begin_next(web);
}

/* Instead of what the action was about. */
static void show_dialog(struct action *a)
{
    cdp_forget(a->web->browser.cdp, a);
    action_limit(a, 0, NULL);
    if (a->steps.bare)
        refuse_for_dialog(a);
    else
        finish(a);
}

void web_changed(void *arg)
{
    struct web *web = arg;
    if (web->busy && web->tabs.dialogs.session && !works_behind_dialog(web->first))
        show_dialog(web->first);
    else if (web->busy && web->first->rest.settling)
        idle_look(web->first);
}

void web_end(struct web *web, const struct err *why)
{
    web->over = true;
    web->end = *why;
    if (web->busy)
        finish(web->first);
}
