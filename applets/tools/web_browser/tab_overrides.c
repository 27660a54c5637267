#include "tab_overrides.h"

#include <string.h>

#include "tab_internal.h"

#define SCRIPT "Page.addScriptToEvaluateOnNewDocument" /* may be there several times */

static void put(struct buf *list, struct span method, struct span params)
{
    buf_adds(list, list->len > 0 ? "," : "");
    buf_add(list, method.s, method.n);
    buf_addc(list, ',');
    buf_add(list, params.s, params.n);
}

void overrides_put(struct buf *list, const char *method, const char *params)
{
    buf_adds(list, list->len > 0 ? "," : "");
    json_put_string(list, method, strlen(method));
    buf_addf(list, ",%s", params);
}

/* Its elements as an array. */
static void whole(struct buf *out, struct span list)
{
    buf_addc(out, '[');
    buf_add(out, list.s, list.n);
    buf_addc(out, ']');
}

static bool names(struct span list, struct span method)
{
    struct span other, params;
    bool found = false;
    for (size_t at = 0; !found && json_element(list, &at, &other) && json_element(list, &at, &params);)
        found =
            other.n == method.n && memcmp(other.s, method.s, method.n) == 0 && !json_string_is(other, SCRIPT);
    return found;
}

void overrides_keep(struct tabs *tabs, struct span list)
{
    struct buf before BUF_AUTO = BUF_INIT;
    struct buf now BUF_AUTO = BUF_INIT;
    struct span method, params;
    whole(&before, span_of(&tabs->overrides.list));
    whole(&now, list);
    buf_truncate(&tabs->overrides.list, 0);
    for (size_t at = 0;
         json_element(span_of(&before), &at, &method) && json_element(span_of(&before), &at, &params);)
        if (!names(span_of(&now), method))
            put(&tabs->overrides.list, method, params);
    for (size_t at = 0;
         json_element(span_of(&now), &at, &method) && json_element(span_of(&now), &at, &params);)
        put(&tabs->overrides.list, method, params);
}

void overrides_call(struct tabs *tabs, const char *session, struct span list)
{
    struct buf all BUF_AUTO = BUF_INIT;
    struct span method, params;
    whole(&all, list);
    for (size_t at = 0;
         json_element(span_of(&all), &at, &method) && json_element(span_of(&all), &at, &params);) {
        struct buf name BUF_AUTO = BUF_INIT;
        json_string_text(method, &name);
        cdp_call(tabs->cdp, session, buf_str(&name), params, NULL, NULL);
    }
}

void overrides_begin_page(struct tabs *tabs, const char *session)
{
    overrides_call(tabs, session, span_of(&tabs->overrides.list));
}
