/* The methods of one browser session, in its keeper: params in, actions of the session, results out. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log.h"
#include "mem.h"
#include "open.h"
#include "proc.h"
#include "relocate.h"
#include "commands/server/server.h"
#include "web.h"
#include "web_behind_methods.h"
#include "web_browser.h"
#include "web_params.h"
#include "web_keeper.h"

#define GRACE_MS 200 /* for what a dead browser leaves */
#define LIMIT_MS 3000

struct hosted {
    struct web web;
    struct keeper_service *service;
    const char *name;
    char *user;
    bool headful;
};

static bool unpack(struct rpc_call *call, const struct params_table *table, struct span params,
                   struct web_params *p)
{
    *p = (struct web_params)WEB_PARAMS_DEFAULTS;
    return rpc_unpack(call, table, params, p);
}

/* One of the methods that are an action each. */
static void act(struct rpc_call *call, struct span params, struct hosted *h, const struct params_table *table,
                const step_fn *steps, bool bare)
{
    struct web_params p;
    if (unpack(call, table, params, &p))
        web_act(&h->web, call, &p, steps, bare);
}

#define METHOD(name, table, steps, bare)                                                                     \
    static void name(struct rpc_call *call, struct span params, void *ctx)                                   \
    {                                                                                                        \
        act(call, params, ctx, &(table), steps, bare);                                                       \
    }

METHOD(click, web_click_params, click_steps, false)
METHOD(type_text, web_text_params, type_steps, false)
METHOD(type_submit, web_text_params, submit_steps, false)
METHOD(choose, web_value_params, select_steps, false)
METHOD(press, web_key_params, press_steps, false)
METHOD(back, web_session_params, back_steps, false)
METHOD(forward, web_session_params, forward_steps, false)
METHOD(refresh, web_session_params, refresh_steps, false)
METHOD(screenshot, web_picture_params, screenshot_steps, true)
METHOD(evaluate, web_expression_params, evaluate_steps, true)
METHOD(text, web_read_params, text_steps, true)
METHOD(find, web_find_params, find_steps, false)
METHOD(pdf, web_session_params, pdf_steps, true)
METHOD(dialog, web_dialog_params, dialog_steps, false)
METHOD(network, web_network_params, network_steps, true)
METHOD(console, web_session_params, console_steps, true)
METHOD(downloads, web_session_params, downloads_steps, true)

static void refuse(struct rpc_call *call, struct web_params *p, const char *what)
{
    struct err err;
    web_params_release(p);
    err_set(&err, ERR_PARAMS, "Invalid parameters: %s", what);
    rpc_fail(call, &err);
}

static void go(struct rpc_call *call, struct span params, void *ctx)
{
    struct hosted *h = ctx;
    struct web_params p;
    if (!unpack(call, &web_url_params, params, &p))
        return;
    if (strspn(p.url.s, " \t\r\n") == p.url.n)
        refuse(call, &p, "url: must not be empty");
    else
        web_act(&h->web, call, &p, go_steps, false);
}

static void scroll(struct rpc_call *call, struct span params, void *ctx)
{
    struct hosted *h = ctx;
    struct web_params p;
    if (!unpack(call, &web_direction_params, params, &p))
        return;
    if (strcmp(p.direction.s, "up") != 0 && strcmp(p.direction.s, "down") != 0)
        refuse(call, &p, "direction: must be \"up\" or \"down\"");
    else
        web_act(&h->web, call, &p, scroll_steps, false);
}

static void wait_for(struct rpc_call *call, struct span params, void *ctx)
{
    struct hosted *h = ctx;
    struct web_params p;
    if (!unpack(call, &web_wait_params, params, &p))
        return;
    int n = (p.text.n > 0) + (p.gone.n > 0) + (p.url.n > 0) + (p.element_id >= 0) + p.network_idle;
    if (n != 1)
        refuse(call, &p, "exactly one of text, gone, url, element_id and network_idle says what to wait for");
    else
        web_act(&h->web, call, &p, wait_steps, false);
}

/* Without more it lists them. */
static void tabs(struct rpc_call *call, struct span params, void *ctx)
{
    struct hosted *h = ctx;
    struct web_params p;
    if (!unpack(call, &web_tabs_params, params, &p))
        return;
    if (p.new_tab && (p.tab >= 0 || p.close))
        refuse(call, &p, "new: goes with neither tab nor close");
    else if (p.close && p.tab < 0)
        refuse(call, &p, "tab: is missing");
    else if (p.new_tab || p.tab >= 0)
        web_act(&h->web, call, &p, tab_steps, false);
    else
        web_act(&h->web, call, &p, tabs_steps, true);
}

/* ---- the end ---- */

static void close_session(struct rpc_call *call, struct span params, void *ctx)
{
    struct hosted *h = ctx;
    struct web_params p;
    if (!unpack(call, &web_session_params, params, &p))
        return;
    web_params_release(&p);
    keeper_end(h->service, call, KEEPER_CLOSED);
}

static pid_t hang_up(void *ctx)
{
    struct hosted *h = ctx;
    struct err why;
    pid_t pid = h->web.browser.pid;
    h->web.closing = true;
    err_set(&why, ERR_TOOL, "the browser session %s was closed", h->name);
    web_end(&h->web, &why);
    browser_hang_up(&h->web.browser, &why);
    return pid;
}

static void cleared(void *ctx)
{
    profile_remove(&((struct hosted *)ctx)->web.browser.profile);
}

static void rest_has_ended(void *arg, size_t left)
{
    struct hosted *h = arg;
    (void)left;
    if (!h->web.closing)
        cleared(h);
}

/* The session stays, to say so to whoever calls next, until it is closed. */
static void browser_ended(void *arg)
{
    struct web *web = arg;
    struct hosted *h = (struct hosted *)web; /* its first member */
    struct err why;
    if (web->closing)
        return;
    browser_say_end(&web->browser, &why);
    err_set(&web->end, ERR_TOOL, "%.800s; open a new session with web_new_session", why.msg);
    why = web->end;
    web_end(web, &why);
    struct tree_end_options all = {.grace_ms = GRACE_MS, .limit_ms = LIMIT_MS};
    tree_end(web->loop, &all, rest_has_ended, h);
}

/* ---- status ---- */

static void status(struct rpc_call *call, struct span params, void *ctx)
{
    const struct hosted *h = ctx;
    const struct tab *t = h->web.tabs.first;
    struct buf text BUF_AUTO = BUF_INIT;
    (void)params;
    buf_addc(&text, '{');
    json_member_int_or_null(&text, "pid", h->web.browser.pid > 0 ? h->web.browser.pid : -1);
    json_member_string(&text, "state", h->web.over ? "ended" : h->web.busy ? "busy" : "idle");
    json_member_string(&text, "user", h->user);
    json_member_string(&text, "browser", h->web.browser.program);
    json_member_bool(&text, "headful", h->headful);
    json_member_bool(&text, "sandbox", h->web.browser.sandboxed);
    json_member_int(&text, "tabs", (long long)h->web.tabs.n);
    json_member_text(&text, "url", t ? t->url : "", t ? strcspn(t->url, "?") : 0);
    keeper_put_usage(&text, h->service);
    buf_addc(&text, '}');
    rpc_result(call, span_of(&text));
}

/* ---- the beginning ---- */

int web_start_in_keeper(struct keeper *k, void *arg, struct err *err)
{
    const struct starting *s = arg;
    const struct web_session_params *p = s->params;
    if (code_unpack(CODE_browser, err) < 0)
        return -1;
    struct hosted *h = mem_zalloc(sizeof *h);
    struct downloads downloads = {.dirfd = -1};
    if (downloads_open(&downloads, p->downloads.s, err) < 0) {
        free(h);
        return -1;
    }
    struct browser_wish wish = {.user = s->user, .headful = p->headful};
    if (web_open(&h->web, k, &wish, browser_ended, err) < 0)
        return err_wrap(err, "cannot open a browser session");
    h->name = k->name;
    h->headful = p->headful;
    h->user = user_label(s->user ? s->user->uid : geteuid());
    h->web.tabs.dialogs.accept = p->accept_dialogs;
    h->web.tabs.dialogs.ask = p->ask_dialogs;
    h->web.devtools = p->devtools;
    web_take_downloads(&h->web, &downloads);
    if (p->accept_certificates)
        web_accept_certificates(&h->web);
    h->service = keeper_serve(k, &web_browser_tool, h, status, hang_up);
    keeper_on_cleared(h->service, cleared);
    if (p->ends_with > 0)
        keeper_ends_with(h->service, (pid_t)p->ends_with);
    return 0;
}

const struct rpc_method web_keeper_methods[] = {
    {"web_go", go, &web_url_params, DOC("Open a page"), DOC("a page"),
     DOC("no such session; the browser has ended"), DOC("web_go"), NULL},
    {"web_click", click, &web_click_params, DOC("Click an element, hover over it or drag it"), DOC("a page"),
     DOC("no such session; the browser has ended"), DOC("web_click"), NULL},
    {"web_type", type_text, &web_text_params, DOC("Type into an element, behind what is there"),
     DOC("a page"), DOC("no such session; the browser has ended"), DOC("web_type"), NULL},
    {"web_type_submit", type_submit, &web_text_params, DOC("Type in place of what is there, and press Enter"),
     DOC("a page"), DOC("no such session; the browser has ended"), DOC("web_type"), NULL},
    {"web_scroll", scroll, &web_direction_params, DOC("Scroll the page, or a part of it"), DOC("a page"),
     DOC("no such session; the browser has ended"), DOC("web_scroll"), NULL},
    {"web_back", back, &web_session_params, DOC("Go back in the history"), DOC("a page"),
     DOC("no such session; the browser has ended"), DOC("web_history"), NULL},
    {"web_forward", forward, &web_session_params, DOC("Go forward in the history"), DOC("a page"),
     DOC("no such session; the browser has ended"), DOC("web_history"), NULL},
    {"web_refresh", refresh, &web_session_params, DOC("Load the page again"), DOC("a page"),
     DOC("no such session; the browser has ended"), DOC("web_history"), NULL},
    {"web_select", choose, &web_value_params, DOC("Choose an option of a select"), DOC("a page"),
     DOC("no such session; the browser has ended"), DOC("web_select"), NULL},
    {"web_press", press, &web_key_params, DOC("Press a key"), DOC("a page"),
     DOC("no such session; the browser has ended"), DOC("web_press"), NULL},
    {"web_screenshot", screenshot, &web_picture_params, DOC("Take a picture of the page"),
     DOC("{mime_type, data}: a PNG in base64"), DOC("no such session; the browser has ended"),
     DOC("web_screenshot"), NULL},
    {"web_evaluate", evaluate, &web_expression_params, DOC("Evaluate a JavaScript expression"),
     DOC("{type, value}, or {type, description} of what JSON can't say"),
     DOC("no such session; the browser has ended; an exception"), DOC("web_evaluate"), NULL},
    {"web_wait", wait_for, &web_wait_params, DOC("Wait for something on the page"), DOC("a page"),
     DOC("no such session; the browser has ended"), DOC("web_wait"), NULL},
    {"web_find", find, &web_find_params, DOC("Find a text on the page, and scroll to it"), DOC("a page"),
     DOC("no such session; the browser has ended"), DOC("web_find"), NULL},
    {"web_text", text, &web_read_params, DOC("Read the whole text of the page"),
     DOC("{web_url, title, text}; with max also {total, next_offset}"),
     DOC("no such session; the browser has ended"), DOC("web_text"), NULL},
    {"web_tabs", tabs, &web_tabs_params, DOC("List the tabs; show, open or close one"),
     DOC("an array of {tab, url, title, current}; with other params a page"),
     DOC("no such tab; no such session; the browser has ended"), DOC("web_tabs"), NULL},
    {"web_upload", web_upload, &web_upload_params, DOC("Choose files for an input"), DOC("a page"),
     DOC("no such session; the browser has ended"), NULL, NULL},
    {"web_downloads", downloads, &web_session_params, DOC("List what was downloaded"),
     DOC("an array of {name, state, bytes, total, folder, url}; state is running, done, canceled, or what is "
         "wrong"),
     DOC("no such session; the browser has ended"), NULL, NULL},
    {"web_dialog", dialog, &web_dialog_params, DOC("Answer the dialog that a page shows"), DOC("a page"),
     DOC("no such session; the browser has ended"), NULL, NULL},
    {"web_pdf", pdf, &web_session_params, DOC("Print the page as PDF"), DOC("{mime_type, data}: in base64"),
     DOC("no such session; the browser has ended"), NULL, NULL},
    {"web_console", console, &web_session_params, DOC("Tell what the page has written to its console"),
     DOC("an array of {level, text, url, line}"), DOC("no such session; the browser has ended"), NULL, NULL},
    {"web_network", network, &web_network_params, DOC("List the newest requests of pages"),
     DOC("an array of {id, method, url, type, status, mime_type, bytes, error}, 200 at most; with body {id, "
         "request_body, base64, "
         "body}"),
     DOC("no such session; the browser has ended"), NULL, NULL},
    {"web_emulate", web_emulate, &web_emulate_params, DOC("Be another browser: size, language, place, …"),
     DOC("a page"), DOC("no such session; the browser has ended"), NULL, NULL},
    {"web_state", web_state, &web_state_params, DOC("Tell cookies and local storage, or take them over"),
     DOC("{cookies, origins}; with load a page"), DOC("no such session; the browser has ended"), NULL, NULL},
    {"web_devtools", web_devtools, &web_devtools_params, DOC("Call a method of the DevTools protocol"),
     DOC("its result"), DOC("no such session; the session was not opened for it; what the browser says"),
     NULL, NULL},
    {"web_close_session", close_session, &web_session_params, DOC("End a browser session"), DOC("null"),
     DOC("no such session"), DOC("web_close"), NULL},
    {0},
};
