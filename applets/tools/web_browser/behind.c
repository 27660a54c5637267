/* Steps that answer with what lies behind the pages: requests, console, downloads, cookies and storage, and
 * whatever DevTools tell. */
#include <stdlib.h>
#include <string.h>

#include "mem.h"
#include "web.h"

#define BEHIND_MS 30000

/* ---- what is known already ---- */

static const step_fn body_steps[5];

static void put_requests(struct action *a)
{
    if (a->params.body >= 0) {
        step_branch(a, body_steps);
        return;
    }
    traffic_put(&a->web->tabs.traffic, a->params.url.s, &a->answer);
    step_next(a);
}

const step_fn network_steps[] = {put_requests, NULL};

/* Of one request what was sent and what came: the browser keeps some megabytes of each page's. */
static void ask_for(struct action *a, const char *method)
{
    const struct request *r = traffic_find(&a->web->tabs.traffic, a->params.body);
    struct buf params BUF_AUTO = BUF_INIT;
    if (!r || !r->id || !r->session) {
        step_fail(a, "there is no request %lld (any more); web_network lists them", a->params.body);
        return;
    }
    buf_addc(&params, '{');
    json_member_string(&params, "requestId", r->id);
    buf_addc(&params, '}');
    step_ask_lax(a, r->session, method, &params, BEHIND_MS);
}

static void ask_sent(struct action *a)
{
    ask_for(a, "Network.getRequestPostData");
}

static void put_sent(struct action *a)
{
    struct buf text BUF_AUTO = BUF_INIT;
    bool sent = a->asked.result.s && member_text(a->asked.result, "postData", &text);
    buf_addc(&a->answer, '{');
    json_member_int(&a->answer, "id", a->params.body);
    json_member_string(&a->answer, "request_body", sent ? buf_str(&text) : NULL);
    step_next(a);
}

static void ask_body(struct action *a)
{
    ask_for(a, "Network.getResponseBody");
}

static void put_body(struct action *a)
{
    struct span body, coded;
    if (!a->asked.result.s || !json_member(a->asked.result, "body", &body, NULL)) {
        step_fail(a, "the body of request %lld is not kept (any more), or has not come: %s", a->params.body,
                  a->asked.why.msg);
        return;
    }
    json_member_bool(&a->answer, "base64",
                     json_member(a->asked.result, "base64Encoded", &coded, NULL) && span_is(coded, "true"));
    json_key(&a->answer, "body");
    buf_add(&a->answer, body.s, body.n);
    buf_addc(&a->answer, '}');
    step_next(a);
}

static const step_fn body_steps[5] = {ask_sent, put_sent, ask_body, put_body, NULL};

static void put_downloads(struct action *a)
{
    const struct downloads *d = &a->web->tabs.downloads;
    buf_addc(&a->answer, '[');
    for (size_t i = 0; i < d->n; i++) {
        const struct download *f = &d->list[i];
        buf_adds(&a->answer, i > 0 ? ",{" : "{");
        json_member_string(&a->answer, "name", f->name);
        json_member_string(&a->answer, "state", f->state);
        json_member_int(&a->answer, "bytes", f->bytes);
        json_member_int_or_null(&a->answer, "total", f->total > 0 ? f->total : -1);
        json_member_string(&a->answer, "folder", d->dir);
        json_member_string(&a->answer, "url", f->url);
        buf_addc(&a->answer, '}');
    }
    buf_addc(&a->answer, ']');
    step_next(a);
}

const step_fn downloads_steps[] = {put_downloads, NULL};

/* ---- console: the browser keeps it, and tells all of it to who begins to listen ---- */

static void listen_to_console(struct action *a)
{
    buf_addc(&a->answer, '[');
    a->web->tabs.traffic.console = &a->console;
    step_ask(a, page_session(a), "Runtime.enable", NULL, BEHIND_MS);
}

static void listen_to_log(struct action *a)
{
    step_ask(a, page_session(a), "Log.enable", NULL, BEHIND_MS);
}

static void leave_log(struct action *a)
{
    step_ask(a, page_session(a), "Log.disable", NULL, BEHIND_MS);
}

static void leave(struct action *a)
{
    step_ask(a, page_session(a), "Runtime.disable", NULL, BEHIND_MS);
}

static void put_console(struct action *a)
{
    a->web->tabs.traffic.console = NULL;
    buf_add(&a->answer, a->console.data, a->console.len);
    buf_addc(&a->answer, ']');
    step_next(a);
}

const step_fn console_steps[] = {listen_to_console, listen_to_log, leave_log, leave, put_console, NULL};

/* ---- state: what a browser knows again, in the form that Playwright gives it ---- */

static void ask_cookies(struct action *a)
{
    struct buf params BUF_AUTO = BUF_INIT;
    buf_addc(&params, '{');
    json_member_string(&params, "browserContextId", a->web->context);
    buf_addc(&params, '}');
    step_ask(a, "", "Storage.getCookies", &params, BEHIND_MS);
}

static void put_cookies(struct action *a)
{
    struct span cookies = {"[]", 2};
    json_member(a->asked.result, "cookies", &cookies, NULL);
    buf_addc(&a->answer, '{');
    json_key(&a->answer, "cookies");
    buf_add(&a->answer, cookies.s, cookies.n);
    json_key(&a->answer, "origins");
    buf_addc(&a->answer, '[');
    step_next(a);
}

static const struct tab *tab_at(const struct action *a, size_t i)
{
    const struct tab *t = a->web->tabs.first;
    while (t && i-- > 0)
        t = t->next;
    return t;
}

static void ask_storage(struct action *a)
{
    static const char expression[] = "({origin:location.origin,localStorage:Object.entries(localStorage).map("
                                     "([name,value])=>({name,value}))})";
    struct buf params BUF_AUTO = BUF_INIT;
    const struct tab *t = tab_at(a, a->asked.told);
    if (!t) {
        buf_adds(&a->answer, "]}");
        step_done(a);
        return;
    }
    buf_addc(&params, '{');
    json_member_string(&params, "expression", expression);
    json_member_bool(&params, "returnByValue", true);
    buf_addc(&params, '}');
    step_ask_lax(a, t->session, "Runtime.evaluate", &params, BEHIND_MS);
}

static const step_fn storage_steps[3];

/* Pages that have none (about:blank, a file) throw. */
static void put_storage(struct action *a)
{
    struct span result, value;
    a->asked.told++;
    if (a->asked.result.s && json_member(a->asked.result, "result", &result, NULL) &&
        json_member(result, "value", &value, NULL) && json_kind(value) == JSON_OBJECT) {
        char *one MEM_AUTO = mem_dup(value.s, value.n);
        if (!strstr(a->answer.data, one)) { /* of two tabs of one origin */
            buf_adds(&a->answer, a->answer.data[a->answer.len - 1] == '[' ? "" : ",");
            buf_adds(&a->answer, one);
        }
    }
    step_branch(a, storage_steps);
}

static const step_fn storage_steps[3] = {ask_storage, put_storage, NULL};
const step_fn state_steps[] = {ask_cookies, put_cookies, ask_storage, put_storage, NULL};

/* ---- DevTools ---- */

static void ask_devtools(struct action *a)
{
    struct buf params BUF_AUTO = BUF_INIT;
    buf_add(&params, a->params.raw.s, a->params.raw.n);
    step_ask(a, a->params.of_browser ? "" : page_session(a), a->params.text.s, &params, BEHIND_MS);
}

static void put_result(struct action *a)
{
    buf_add(&a->answer, a->asked.result.s, a->asked.result.n);
    step_next(a);
}

const step_fn devtools_steps[] = {ask_devtools, put_result, NULL};
