/* Writing files, and text_editor. */
#include <string.h>

#include "base64.h"
#include "commands/exec/route.h"
#include "mcp_tools.h"
#include "mem.h"
#include "relocate.h"
#include "tools/text_editor/edit_path.h"
#include "tools/text_editor/edit_whole.h"

/* ---- text_editor ---- */

int mcp_text_editor(struct work *w, struct err *err)
{
    struct buf result BUF_AUTO = BUF_INIT;
    if (strcmp(w->args.command.s, "view") == 0 && !w->args.view_range.set) {
        int image = mcp_take_image(w, w->args.path.s, err);
        if (image < 0)
            return -1;
        if (image > 0) {
            buf_addf(&w->text, "The image %s", w->args.path.s);
            return 0;
        }
    }
    if (call_method("text_editor", w->arguments, &result, err) < 0)
        return -1;
    json_string_text(span_of(&result), &w->text);
    return 0;
}

/* ---- write_file ---- */

int mcp_write_file(struct work *w, struct err *err)
{
    static const char *const modes[] = {"create", "append"};
    const struct args *a = &w->args;
    struct buf bytes BUF_AUTO = BUF_INIT;
    struct span content = {a->content.s, a->content.n};
    struct edit_whole how = {.how = WHOLE_REPLACE};
    size_t made = 0;
    if (a->encoding.s && strcmp(a->encoding.s, "base64") == 0) {
        if (!base64_get(&bytes, content.s, content.n))
            return err_set(err, ERR_PARAMS, "Invalid parameters: content: is no base64");
        content = span_of(&bytes);
    }
    for (int i = 0; a->mode.s && i < 2; i++)
        if (strcmp(a->mode.s, modes[i]) == 0)
            how.how = i == 0 ? WHOLE_CREATE : WHOLE_APPEND;
    if (a->parents && edit_make_parents(a->path.s, &made, err) < 0)
        return -1;
    if (code_unpack(CODE_edit, err) < 0 ||
        edit_whole(&how, a->path.s, a->path.n, content.s, content.n, err) < 0) {
        edit_unmake_parents(a->path.s, made);
        return -1;
    }
    buf_addc(&w->structured, '{');
    json_member_text(&w->structured, "path", a->path.s, a->path.n);
    json_member_bool(&w->structured, "created", how.created);
    json_member_int(&w->structured, "size", (long long)how.size);
    json_member_bool(&w->structured, "can_be_undone", how.undoable);
    buf_addc(&w->structured, '}');
    return 0;
}
