/* The desktop: computer_action, as a tool. One session for a connection, which the first call opens. */
#include <string.h>

#include "commands/exec/route.h"
#include "mcp_tools.h"

int mcp_end_computer(struct work *w, struct err *err)
{
    struct buf params BUF_AUTO = BUF_INIT;
    struct buf result BUF_AUTO = BUF_INIT;
    buf_addc(&params, '{');
    json_member_string(&params, "session_name", w->session);
    buf_addc(&params, '}');
    return call_method("computer_close_session", span_of(&params), &result, err);
}

/* A session whose display has ended is closed, so that the next call opens another one. */
static void forget_if_ended(struct work *w)
{
    struct buf list BUF_AUTO = BUF_INIT;
    struct span entry, name, state;
    struct err ignored;
    if (call_method("computer_list_sessions", (struct span){"{}", 2}, &list, NULL) < 0)
        return;
    for (size_t at = 0; json_element(span_of(&list), &at, &entry);)
        if (json_member(entry, "session_name", &name, NULL) && json_string_is(name, w->session) &&
            json_member(entry, "state", &state, NULL) && !json_string_is(state, "ended"))
            return;
    mcp_end_computer(w, &ignored);
    work_computer(w, "");
}

/* The picture, as the image of the result; what else the answer says, as it is. */
static void give(struct work *w, struct span answer)
{
    struct span key, value;
    buf_addc(&w->structured, '{');
    for (size_t at = 0; json_next_member(answer, &at, &key, &value);) {
        if (span_is(key, "\"data\"")) {
            json_string_text(value, &w->image);
            w->image_type = "image/png";
            continue;
        }
        if (span_is(key, "\"output\""))
            json_string_text(value, &w->text);
        if (w->structured.len > 1)
            buf_addc(&w->structured, ',');
        buf_add(&w->structured, key.s, key.n);
        buf_addc(&w->structured, ':');
        buf_add(&w->structured, value.s, value.n);
    }
    buf_addc(&w->structured, '}');
    if (w->image.len == 0 && w->text.len == 0)
        buf_adds(&w->text, "Done");
}

int mcp_computer(struct work *w, struct err *err)
{
    struct buf name BUF_AUTO = BUF_INIT;
    struct buf params BUF_AUTO = BUF_INIT;
    struct buf result BUF_AUTO = BUF_INIT;
    bool place = strcmp(w->args.command.s, "cursor_position") == 0;
    if (w->computer)
        buf_adds(&name, w->computer);
    else if (work_open_session(w, "computer_new_session", work_computer, &name, err) < 0)
        return -1;
    w->session = buf_str(&name);
    buf_addc(&params, '{');
    json_member_string(&params, "session_name", w->session);
    if (w->arguments.n > 2)
        buf_addc(&params, ',');
    buf_add(&params, w->arguments.s + 1, w->arguments.n - 2);
    struct span given;
    if (!place && !json_member(w->arguments, "screenshot", &given, NULL))
        json_member_bool(&params, "screenshot", true);
    buf_addc(&params, '}');
    if (call_method("computer_action", span_of(&params), &result, err) < 0) {
        forget_if_ended(w);
        return -1;
    }
    give(w, span_of(&result));
    return 0;
}
