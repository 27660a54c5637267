/* Steps that tell the browser how to be: the answer to a dialog, another size, language or place, cookies. */
#include <stdlib.h>
#include <string.h>

#include "mem.h"
#include "web.h"

#define TELL_MS 15000

/* ---- dialog ---- */

static void answer_dialog(struct action *a)
{
    const struct dialogs *d = &a->web->tabs.dialogs;
    struct buf params BUF_AUTO = BUF_INIT;
    if (!d->session) {
        step_fail(a, "the page shows no dialog");
        return;
    }
    char *session MEM_AUTO = mem_strdup(d->session);
    buf_addc(&params, '{');
    json_member_bool(&params, "accept", a->params.accept);
    if (a->params.text.s)
        json_member_text(&params, "promptText", a->params.text.s, a->params.text.n);
    buf_addc(&params, '}');
    dialog_closes(&a->web->tabs, NULL);
    step_ask(a, session, "Page.handleJavaScriptDialog", &params, TELL_MS);
}

const step_fn dialog_steps[] = {answer_dialog, NULL};

/* ---- a list of calls (tab_overrides.h), in params.raw; what is of pages holds for those to come as well
 * ---- */

static bool is_of_browser(const struct buf *method)
{
    return strncmp(buf_str(method), "Browser.", 8) == 0 || strncmp(buf_str(method), "Storage.", 8) == 0;
}

static bool call_at(const struct action *a, size_t i, struct buf *method, struct span *params)
{
    struct span name, list = {a->params.raw.s, a->params.raw.n};
    size_t at = 0;
    bool there;
    do
        there = json_element(list, &at, &name) && json_element(list, &at, params);
    while (there && i-- > 0);
    return there && json_string_text(name, method);
}

/* A process has one time zone, and keeps the first that one of its pages was given. */
static void forget_timezone(struct tabs *tabs)
{
    struct buf list BUF_AUTO = BUF_INIT;
    overrides_put(&list, "Emulation.setTimezoneOverride", "{\"timezoneId\":\"\"}");
    for (const struct tab *t = tabs->first; t; t = t->next)
        overrides_call(tabs, t->session, span_of(&list));
}

static void tell(struct action *a)
{
    struct buf method BUF_AUTO = BUF_INIT;
    struct buf text BUF_AUTO = BUF_INIT;
    struct span params;
    if (!call_at(a, a->asked.told, &method, &params)) {
        step_done(a);
        return;
    }
    buf_add(&text, params.s, params.n);
    if (strcmp(method.data, "Emulation.setTimezoneOverride") == 0)
        forget_timezone(&a->web->tabs);
    step_ask(a, is_of_browser(&method) ? "" : page_session(a), buf_str(&method), &text, TELL_MS);
}

static void told(struct action *a)
{
    struct tabs *tabs = &a->web->tabs;
    struct buf method BUF_AUTO = BUF_INIT;
    struct span params;
    if (call_at(a, a->asked.told++, &method, &params) && !is_of_browser(&method)) {
        struct buf one BUF_AUTO = BUF_INIT;
        char *text MEM_AUTO = mem_dup(params.s, params.n);
        overrides_put(&one, method.data, text);
        overrides_keep(tabs, span_of(&one));
        for (const struct tab *t = tabs->first ? tabs->first->next : NULL; t; t = t->next)
            overrides_call(tabs, t->session, span_of(&one));
    }
    step_branch(a, tell_steps);
}

const step_fn tell_steps[] = {tell, told, NULL};
