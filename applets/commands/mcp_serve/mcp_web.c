/* The browser: the methods of web_browser, as tools. One session for a connection, which web_go opens. */
#include "mcp_tools.h"

#include <stdio.h>
#include <string.h>

#include "commands/exec/route.h"

/* ---- the session ---- */

static void begin_params(struct buf *params, const char *session)
{
    buf_addc(params, '{');
    json_member_string(params, "session_name", session);
}

static int open_session(struct work *w, struct buf *name, struct err *err)
{
    if (work_open_session(w, "web_new_session", work_browser, name, err) < 0)
        return -1;
    work_log(w, "info", "browser session %s started", buf_str(name));
    return 0;
}

/* A session that isn't there any more is forgotten, so that the next web_go opens another one. */
static void forget_if_gone(struct work *w)
{
    struct buf list BUF_AUTO = BUF_INIT;
    struct span entry, name;
    if (call_method("web_list_sessions", (struct span){"{}", 2}, &list, NULL) < 0 ||
        json_kind(span_of(&list)) != JSON_ARRAY)
        return;
    for (size_t at = 0; json_element(span_of(&list), &at, &entry);)
        if (json_member(entry, "session_name", &name, NULL) && json_string_is(name, w->browser))
            return;
    work_browser(w, "");
}

/* A method of the session; `params` is begun, and is ended here. */
static int ask(struct work *w, const char *method, struct buf *params, struct buf *result, struct err *err)
{
    buf_addc(params, '}');
    if (call_method(method, span_of(params), result, err) == 0)
        return 0;
    if (w->browser)
        forget_if_gone(w);
    return -1;
}

static int need_page(const struct work *w, struct err *err)
{
    return w->browser ? 0 : err_set(err, ERR_TOOL, "no page is open: open one with web_go");
}

/* ---- pages ---- */

static void put_text(struct buf *out, const char *before, struct span object, const char *key)
{
    struct buf text BUF_AUTO = BUF_INIT;
    struct span value;
    if (!json_member(object, key, &value, NULL) || !json_string_text(value, &text) || text.len == 0)
        return;
    buf_adds(out, before);
    buf_add(out, text.data, text.len);
}

/* As text: what went wrong, what else has happened, then the lines of the tree, which begin with the page's
 * own. */
static void give_page(struct work *w, const struct buf *page)
{
    struct span notes, note;
    buf_add(&w->structured, page->data, page->len);
    put_text(&w->text, "Error: ", span_of(page), "error");
    if (w->text.len > 0)
        buf_addc(&w->text, '\n');
    if (json_member(span_of(page), "notes", &notes, NULL) && json_kind(notes) == JSON_ARRAY)
        for (size_t at = 0; json_element(notes, &at, &note);) {
            buf_adds(&w->text, "Note: ");
            json_string_text(note, &w->text);
            buf_addc(&w->text, '\n');
        }
    put_text(&w->text, "", span_of(page), "web_at");
}

static int page_of(struct work *w, const char *method, struct buf *params, struct err *err)
{
    struct buf page BUF_AUTO = BUF_INIT;
    if (ask(w, method, params, &page, err) < 0)
        return -1;
    give_page(w, &page);
    return 0;
}

/* An action on the page that is open, with one text argument (key NULL: none), and on an element (0: none).
 */
static int act(struct work *w, const char *method, const char *key, const struct text *text, bool element,
               struct err *err)
{
    struct buf params BUF_AUTO = BUF_INIT;
    if (need_page(w, err) < 0)
        return -1;
    begin_params(&params, w->browser);
    if (element)
        json_member_int(&params, "element_id", w->args.element);
    if (key)
        json_member_text(&params, key, text->s, text->n);
    return page_of(w, method, &params, err);
}

static void put_given(struct buf *params, const char *key, const struct text *text)
{
    if (text->s)
        json_member_text(params, key, text->s, text->n);
}

int mcp_web_go(struct work *w, struct err *err)
{
    struct buf params BUF_AUTO = BUF_INIT;
    struct buf name BUF_AUTO = BUF_INIT;
    if (w->browser)
        buf_adds(&name, w->browser);
    else if (open_session(w, &name, err) < 0)
        return -1;
    w->browser = buf_str(&name);
    begin_params(&params, w->browser);
    json_member_text(&params, "url", w->args.url.s, w->args.url.n);
    return page_of(w, "web_go", &params, err);
}

int mcp_web_click(struct work *w, struct err *err)
{
    struct buf params BUF_AUTO = BUF_INIT;
    if (need_page(w, err) < 0)
        return -1;
    begin_params(&params, w->browser);
    json_member_int(&params, "element_id", w->args.element);
    put_given(&params, "how", &w->args.value);
    if (w->args.tab >= 0)
        json_member_int(&params, "to", w->args.tab);
    if (w->args.rows > 0 || w->args.cols > 0) {
        json_member_int(&params, "x", w->args.rows);
        json_member_int(&params, "y", w->args.cols);
    }
    return page_of(w, "web_click", &params, err);
}

int mcp_web_type(struct work *w, struct err *err)
{
    return act(w, w->args.enter ? "web_type_submit" : "web_type", "text", &w->args.text, true, err);
}

int mcp_web_select(struct work *w, struct err *err)
{
    return act(w, "web_select", "value", &w->args.value, true, err);
}

int mcp_web_press(struct work *w, struct err *err)
{
    return act(w, "web_press", "key", &w->args.key, false, err);
}

int mcp_web_scroll(struct work *w, struct err *err)
{
    return act(w, "web_scroll", "direction", &w->args.direction, w->args.element > 0, err);
}

int mcp_web_find(struct work *w, struct err *err)
{
    return act(w, "web_find", "text", &w->args.text, false, err);
}

int mcp_web_wait(struct work *w, struct err *err)
{
    const struct args *a = &w->args;
    struct buf params BUF_AUTO = BUF_INIT;
    if (need_page(w, err) < 0)
        return -1;
    begin_params(&params, w->browser);
    put_given(&params, "text", &a->text);
    put_given(&params, "gone", &a->gone);
    put_given(&params, "url", &a->url);
    if (a->element > 0)
        json_member_int(&params, "element_id", a->element);
    if (a->idle)
        json_member_bool(&params, "network_idle", true);
    json_member_int(&params, "timeout", a->timeout_s);
    return page_of(w, "web_wait", &params, err);
}

int mcp_web_history(struct work *w, struct err *err)
{
    const char *where = w->args.direction.s;
    const char *method = *where == 'b' ? "web_back" : *where == 'f' ? "web_forward" : "web_refresh";
    return act(w, method, NULL, NULL, false, err);
}

int mcp_web_tabs(struct work *w, struct err *err)
{
    const struct args *a = &w->args;
    struct buf params BUF_AUTO = BUF_INIT;
    struct buf result BUF_AUTO = BUF_INIT;
    if (need_page(w, err) < 0)
        return -1;
    begin_params(&params, w->browser);
    if (a->tab >= 0)
        json_member_int(&params, "tab", a->tab);
    if (a->close)
        json_member_bool(&params, "close", true);
    if (a->new_tab)
        json_member_bool(&params, "new", true);
    if (ask(w, "web_tabs", &params, &result, err) < 0)
        return -1;
    if (json_kind(span_of(&result)) == JSON_ARRAY) {
        buf_adds(&w->structured, "{\"tabs\":");
        buf_add(&w->structured, result.data, result.len);
        buf_addc(&w->structured, '}');
    } else {
        give_page(w, &result);
    }
    return 0;
}

/* ---- what isn't a page ---- */

static int ask_plainly(struct work *w, const char *method, const char *more, struct buf *result,
                       struct err *err)
{
    struct buf params BUF_AUTO = BUF_INIT;
    if (need_page(w, err) < 0)
        return -1;
    begin_params(&params, w->browser);
    buf_adds(&params, more);
    return ask(w, method, &params, result, err);
}

int mcp_web_text(struct work *w, struct err *err)
{
    struct buf more BUF_AUTO = BUF_INIT;
    struct span next;
    buf_addf(&more, ",\"offset\":%lld,\"max\":%lld", w->args.offset, w->args.limit);
    put_given(&more, "format", &w->args.format);
    if (ask_plainly(w, "web_text", buf_str(&more), &w->structured, err) < 0)
        return -1;
    put_text(&w->text, "", span_of(&w->structured), "text");
    if (json_member(span_of(&w->structured), "next_offset", &next, NULL) && json_kind(next) == JSON_NUMBER)
        buf_addf(&w->text, "\n(it goes on at offset %.*s)", (int)next.n, next.s);
    return 0;
}

int mcp_web_screenshot(struct work *w, struct err *err)
{
    struct buf result BUF_AUTO = BUF_INIT;
    struct span data;
    char more[64] = "";
    if (w->args.element > 0)
        snprintf(more, sizeof more, ",\"element_id\":%lld", w->args.element);
    else if (w->args.full_page)
        snprintf(more, sizeof more, ",\"full_page\":true");
    if (ask_plainly(w, "web_screenshot", more, &result, err) < 0)
        return -1;
    if (!json_member(span_of(&result), "data", &data, NULL) || !json_string_text(data, &w->image))
        return err_set(err, ERR_INTERNAL, "there is no picture in the answer");
    w->image_type = "image/png";
    buf_adds(&w->structured, "{\"mime_type\":\"image/png\"}");
    return 0;
}

int mcp_web_evaluate(struct work *w, struct err *err)
{
    struct buf more BUF_AUTO = BUF_INIT;
    buf_adds(&more, ",\"expression\":");
    json_put_string(&more, w->args.expression.s, w->args.expression.n);
    return ask_plainly(w, "web_evaluate", buf_str(&more), &w->structured, err);
}

int mcp_web_close(struct work *w, struct err *err)
{
    struct buf result BUF_AUTO = BUF_INIT;
    if (w->browser && ask_plainly(w, "web_close_session", "", &result, err) < 0)
        return -1;
    work_browser(w, "");
    buf_addf(&w->structured, "{\"closed\":%s}", w->browser ? "true" : "false");
    return 0;
}

/* ---- of our own accord ---- */

int mcp_end_browser(struct work *w, struct err *err)
{
    struct buf params BUF_AUTO = BUF_INIT;
    struct buf result BUF_AUTO = BUF_INIT;
    begin_params(&params, w->session);
    buf_addc(&params, '}');
    return call_method("web_close_session", span_of(&params), &result, err);
}
