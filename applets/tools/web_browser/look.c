/* Steps that answer with something else than the page's lines: a picture, a value, its text, the tabs. */
#include <stdlib.h>
#include <string.h>

#include "element.h"
#include "mem.h"
#include "web.h"

#define LOOK_MS 30000
#define PICTURE_MAX 16384 /* pixels in height */

/* ---- screenshot ---- */

static void measure(struct action *a)
{
    step_ask(a, page_session(a), "Page.getLayoutMetrics", NULL, LOOK_MS);
}

static long long number_of(struct span object, const char *key)
{
    struct span value;
    return json_member(object, key, &value, NULL) ? strtoll(value.s, NULL, 10) : 0;
}

static void capture(struct action *a)
{
    struct buf params BUF_AUTO = BUF_INIT;
    struct span size;
    buf_adds(&params, "{\"format\":\"png\"");
    if (a->params.full_page && json_member(a->result, "cssContentSize", &size, NULL)) {
        long long height = number_of(size, "height"), width = number_of(size, "width");
        if (height > PICTURE_MAX) {
            tabs_note(&a->web->tabs, "the page is %lld pixels high: the picture ends at %d", height,
                      PICTURE_MAX);
            height = PICTURE_MAX;
        }
        buf_addf(&params,
                 ",\"captureBeyondViewport\":true,\"clip\":{\"x\":0,\"y\":0,\"width\":%lld,\"height\":%lld,"
                 "\"scale\":1}",
                 width < PICTURE_MAX ? width : PICTURE_MAX, height);
    }
    buf_addc(&params, '}');
    step_ask(a, page_session(a), "Page.captureScreenshot", &params, LOOK_MS);
}

static void put_notes(struct action *a)
{
    if (a->web->tabs.notes.len > 0) {
        json_key(&a->answer, "notes");
        buf_addf(&a->answer, "[%s]", a->web->tabs.notes.data);
    }
    buf_addc(&a->answer, '}');
}

static void captured(struct action *a)
{
    struct span data;
    if (!json_member(a->result, "data", &data, NULL)) {
        step_fail(a, "the browser made no picture");
        return;
    }
    buf_addc(&a->answer, '{');
    json_member_string(&a->answer, "mime_type", "image/png");
    json_key(&a->answer, "data");
    buf_add(&a->answer, data.s, data.n);
    put_notes(a);
    step_next(a);
}

const step_fn screenshot_steps[] = {measure, capture, captured, NULL};

/* ---- evaluate ---- */

/* By reference: an object that refers to itself, or to the window, could not be told otherwise. */
static void evaluate(struct action *a)
{
    struct buf params BUF_AUTO = BUF_INIT;
    buf_addc(&params, '{');
    json_member_text(&params, "expression", a->params.expression.s, a->params.expression.n);
    buf_adds(&params, ",\"awaitPromise\":true,\"userGesture\":true,\"allowUnsafeEvalBlockedByCSP\":true}");
    step_ask(a, page_session(a), "Runtime.evaluate", &params, LOOK_MS);
}

static void exception_text(struct span details, struct buf *text)
{
    struct span exception, value;
    bool there = json_member(details, "exception", &exception, NULL);
    if (there && member_text(exception, "description", text))
        return;
    if (there && json_member(exception, "value", &value, NULL))
        buf_add(text, value.s, value.n);
    else
        member_text(details, "text", text);
}

/* The value, where JSON has one, and what else it is, where that says more. `s` NULL: it can't be told. */
static void put_value(struct action *a, struct span result, const struct buf *description)
{
    struct span value = {"null", 4};
    const char *what = buf_str(description);
    bool there = result.s && json_member(result, "value", &value, NULL);
    bool plain = strcmp(what, "Object") == 0 || strncmp(what, "Array(", 6) == 0;
    json_key(&a->answer, "value");
    buf_add(&a->answer, value.s, value.n);
    if (description->len > 0 && !(there && plain))
        json_member_text(&a->answer, "description", what, description->len);
}

static void end_evaluation(struct action *a)
{
    put_notes(a);
    step_next(a);
}

static const step_fn rest_steps[] = {step_await_idle, end_evaluation, NULL};

static void evaluated(struct action *a)
{
    struct span result, details, value;
    struct buf text BUF_AUTO = BUF_INIT;
    struct buf object BUF_AUTO = BUF_INIT;
    if (json_member(a->result, "exceptionDetails", &details, NULL)) {
        exception_text(details, &text);
        step_fail(a, "%s", buf_str(&text));
        return;
    }
    if (!json_member(a->result, "result", &result, NULL) || !member_text(result, "type", &text)) {
        step_fail(a, "the browser gave no value");
        return;
    }
    buf_addc(&a->answer, '{');
    json_member_text(&a->answer, "type", buf_str(&text), text.len);
    buf_truncate(&text, 0);
    if (!member_text(result, "unserializableValue", &text) && !json_member(result, "value", &value, NULL))
        member_text(result, "description", &text);
    if (member_text(result, "objectId", &object)) {
        a->params.value.s = buf_take(&text, &a->params.value.n);
        a->element.session = mem_strdup(page_session(a));
        a->element.object = buf_take(&object, NULL);
        element_call(a, "function(){return this}", NULL);
        return;
    }
    put_value(a, result, &text);
    step_branch(a, rest_steps);
}

static void have_value(struct action *a)
{
    struct span result = {0};
    struct buf text BUF_AUTO = BUF_INIT;
    buf_add(&text, a->params.value.s, a->params.value.n);
    if (a->result.s)
        json_member(a->result, "result", &result, NULL);
    put_value(a, result, &text);
    step_branch(a, rest_steps);
}

const step_fn evaluate_steps[] = {evaluate, evaluated, have_value, NULL};

/* ---- text ---- */

static void ask_text(struct action *a)
{
    struct buf params BUF_AUTO = BUF_INIT;
    buf_adds(&params,
             "{\"expression\":\"[document.title,(document.body||document.documentElement||{}).innerText||"
             "'']\",\"returnByValue\":true}");
    step_ask(a, page_session(a), "Runtime.evaluate", &params, LOOK_MS);
}

static void have_text(struct action *a)
{
    struct span result, list, title = {"\"\"", 2}, text = {"\"\"", 2};
    size_t at = 0;
    const struct tab *t = a->web->tabs.first;
    const char *url = t ? t->url : "";
    if (json_member(a->result, "result", &result, NULL) && json_member(result, "value", &list, NULL) &&
        json_kind(list) == JSON_ARRAY && json_element(list, &at, &title))
        json_element(list, &at, &text);
    buf_addc(&a->answer, '{');
    json_member_text(&a->answer, "web_url", url, strcspn(url, "?"));
    json_key(&a->answer, "title");
    buf_add(&a->answer, title.s, title.n);
    json_key(&a->answer, "text");
    buf_add(&a->answer, text.s, text.n);
    buf_addc(&a->answer, '}');
    step_next(a);
}

const step_fn text_steps[] = {ask_text, have_text, NULL};

/* ---- tabs ---- */

static void ask_targets(struct action *a)
{
    step_ask(a, "", "Target.getTargets", NULL, LOOK_MS);
}

static void put_title(struct buf *out, struct span targets, const char *target)
{
    struct span info, id, title;
    json_key(out, "title");
    for (size_t at = 0; json_element(targets, &at, &info);)
        if (json_member(info, "targetId", &id, NULL) && json_string_is(id, target) &&
            json_member(info, "title", &title, NULL)) {
            buf_add(out, title.s, title.n);
            return;
        }
    buf_adds(out, "\"\"");
}

static void list_tabs(struct action *a)
{
    const struct tabs *tabs = &a->web->tabs;
    struct span targets = {"[]", 2};
    json_member(a->result, "targetInfos", &targets, NULL);
    buf_addc(&a->answer, '[');
    for (int i = 0; i < tabs->next_number; i++) {
        const struct tab *t = tabs_find(tabs, i);
        if (!t)
            continue;
        buf_adds(&a->answer, a->answer.len > 1 ? ",{" : "{");
        json_member_int(&a->answer, "tab", i);
        json_member_string(&a->answer, "url", t->url);
        put_title(&a->answer, targets, t->target);
        json_member_bool(&a->answer, "current", t == tabs->first);
        buf_addc(&a->answer, '}');
    }
    buf_addc(&a->answer, ']');
    step_next(a);
}

const step_fn tabs_steps[] = {ask_targets, list_tabs, NULL};
