#include <stdlib.h>
#include <string.h>

#include "edit_encoding.h"
#include "mem.h"
#include "relocate.h"
#include "rpc.h"
#include "text_editor.h"
#include "text_editor_controller.h"
#include "user_param.h"
#include "work_as_user.h"

#define FIELD(member) offsetof(struct edit_request, member)

#define ENCODING                                                                                             \
    {                                                                                                        \
        .key = "encoding", .type = PARAM_NAME, .offset = FIELD(encoding),                                    \
        PARAM_DOC("Of the file: " ENCODING_NAMES, "utf-8, or utf-16 where a byte order mark says so")        \
    }

static const struct param view_params[] = {
    {.key = "path",
     .type = PARAM_TEXT,
     .offset = FIELD(path),
     .required = true,
     PARAM_DOC("The file; a relative one is taken from the caller's directory", NULL)},
    {.key = "view_range",
     .type = PARAM_INTS,
     .offset = FIELD(view_range),
     PARAM_DOC("First and last line, from 1; last -1: to the end", "all")},
    ENCODING,
};
static const struct param create_params[] = {
    {.key = "path",
     .type = PARAM_TEXT,
     .offset = FIELD(path),
     .required = true,
     PARAM_DOC("The file to make", NULL)},
    {.key = "file_text",
     .type = PARAM_TEXT,
     .offset = FIELD(file_text),
     .required = true,
     PARAM_DOC("Its content", NULL)},
    {.key = "overwrite",
     .type = PARAM_BOOL,
     .offset = FIELD(overwrite),
     PARAM_DOC("Also in the place of a file that is there, which can be undone", "false")},
    {.key = "parents",
     .type = PARAM_BOOL,
     .offset = FIELD(parents),
     PARAM_DOC("Make the directories that are missing on the way", "false")},
    ENCODING,
};
static const struct param str_replace_params[] = {
    {.key = "path", .type = PARAM_TEXT, .offset = FIELD(path), .required = true, PARAM_DOC("The file", NULL)},
    {.key = "old_str",
     .type = PARAM_TEXT,
     .offset = FIELD(old_str),
     .required = true,
     PARAM_DOC("What is replaced; it has to occur once, unless one of the next two says otherwise", NULL)},
    {.key = "new_str",
     .type = PARAM_TEXT,
     .offset = FIELD(new_str),
     PARAM_DOC("What stands there then", "nothing")},
    {.key = "replace_all",
     .type = PARAM_BOOL,
     .offset = FIELD(replace_all),
     PARAM_DOC("Wherever it occurs", "false")},
    {.key = "expected_count",
     .type = PARAM_INT,
     .offset = FIELD(expected_count),
     .min = 1,
     .max = PARAM_MAX,
     PARAM_DOC("Replace so many, and nothing where it occurs more or less often",
               "any with replace_all, else 1")},
    ENCODING,
};
static const struct param insert_params[] = {
    {.key = "path", .type = PARAM_TEXT, .offset = FIELD(path), .required = true, PARAM_DOC("The file", NULL)},
    {.key = "insert_line",
     .type = PARAM_INT,
     .offset = FIELD(insert_line),
     .required = true,
     PARAM_DOC("The line behind which to insert; 0: in front of the first", NULL)},
    {.key = "new_str",
     .type = PARAM_TEXT,
     .offset = FIELD(new_str),
     PARAM_DOC("The text, as lines of its own", NULL)},
    {.key = "insert_text",
     .type = PARAM_TEXT,
     .offset = FIELD(insert_text),
     PARAM_DOC("Another name of new_str", NULL)},
    ENCODING,
};
static const struct param undo_params[] = {
    {.key = "path", .type = PARAM_TEXT, .offset = FIELD(path), .required = true, PARAM_DOC("The file", NULL)},
};

static const struct param patch_params[] = {
    {.key = "patch",
     .type = PARAM_TEXT,
     .offset = FIELD(patch),
     .required = true,
     PARAM_DOC("A unified diff, git's too, or a text from *** Begin Patch to *** End Patch", NULL)},
    {.key = "path",
     .type = PARAM_TEXT,
     .offset = FIELD(path),
     PARAM_DOC(
         "The directory that its names are taken from, out of which none leads; or the one file it is for",
         "the caller's directory")},
    ENCODING,
};
struct many {
    struct span edits;
};
static const struct param many_params[] = {
    {.key = "edits",
     .type = PARAM_LIST,
     .offset = offsetof(struct many, edits),
     .required = true,
     PARAM_DOC("The edits, in their order: objects with the params of str_replace, insert or create", NULL)},
};

/* Hosts send the keys of every command, most of them null: each command sees its own and ignores the others.
 */
#define COMMAND(array)                                                                                       \
    {                                                                                                        \
        .list = (array), .n = sizeof(array) / sizeof *(array), .ignore_unknown = true                        \
    }

static const struct params_variant commands[] = {
    {"view", COMMAND(view_params)},
    {"create", COMMAND(create_params)},
    {"str_replace", COMMAND(str_replace_params)},
    {"insert", COMMAND(insert_params)},
    {"undo_edit", COMMAND(undo_params)},
    {"apply_patch", COMMAND(patch_params)},
    {"edit_many", COMMAND(many_params)},
    {0},
};
/* In their order. */
static const enum edit_command edit_commands[] = {EDIT_VIEW, EDIT_CREATE, EDIT_STR_REPLACE, EDIT_INSERT,
                                                  EDIT_UNDO, EDIT_PATCH,  EDIT_MANY};

struct selector {
    struct text command;
    struct user_param run_as_user, run_as; /* the one is a name alone, and counts more */
};
static const struct param selector_params[] = {
    {.key = "command",
     .type = PARAM_TEXT,
     .offset = offsetof(struct selector, command),
     .required = true,
     PARAM_DOC("view, create, str_replace, insert, undo_edit, apply_patch or edit_many, each with params of "
               "its own",
               NULL)},
    {.key = "_run_as_user",
     .type = PARAM_NAME,
     .offset = offsetof(struct selector, run_as_user.name),
     PARAM_DOC("As whom the work is done, by name; another user takes root", "the caller")},
    {.key = "_run_as",
     .type = PARAM_USER,
     .offset = offsetof(struct selector, run_as),
     PARAM_DOC("The same, by name or by numbers", "the caller")},
};
static const struct params_table selector_table = COMMAND(selector_params);

static const struct params_variant *find_command(const struct text *name, struct err *err)
{
    for (const struct params_variant *v = commands; v->name; v++)
        if (name->n == strlen(v->name) && strcmp(name->s, v->name) == 0)
            return v;
    err_set(err, ERR_PARAMS,
            "Invalid parameters: command: must be one of view, create, str_replace, insert, undo_edit, "
            "apply_patch, edit_many");
    return NULL;
}

/* ---- edit_many ---- */

static void many_release(struct edit_request *request)
{
    for (size_t i = 0; i < request->n_edits; i++)
        params_release(&commands[request->edits[i].command].table, &request->edits[i]);
    free(request->edits);
}

/* By what it has: old_str, insert_line or file_text. */
static enum edit_command command_of(struct span edit)
{
    struct span value;
    return json_member(edit, "old_str", &value, NULL)       ? EDIT_STR_REPLACE
           : json_member(edit, "insert_line", &value, NULL) ? EDIT_INSERT
                                                            : EDIT_CREATE;
}

static int many_unpack(struct span params, struct edit_request *request, struct err *err)
{
    struct many many = {0};
    struct span one;
    size_t at = 0;
    if (params_unpack(&commands[EDIT_MANY].table, params, &many, err) < 0)
        return -1;
    while (json_element(many.edits, &at, &one)) {
        size_t i = request->n_edits;
        request->edits = mem_realloc(request->edits, (i + 1) * sizeof *request->edits);
        struct edit_request *e = &request->edits[i];
        *e = (struct edit_request){0};
        if (json_kind(one) != JSON_OBJECT)
            return err_set(err, ERR_PARAMS, "Invalid parameters: edits[%zu]: must be an object", i);
        e->command = command_of(one);
        if (params_unpack(&commands[e->command].table, one, e, err) < 0)
            return err_wrap(err, "edits[%zu]", i);
        request->n_edits++;
        if (e->command == EDIT_INSERT && !e->new_str.s && !e->insert_text.s)
            return err_set(err, ERR_PARAMS, "Invalid parameters: edits[%zu]: new_str: is required", i);
    }
    return request->n_edits > 0 ? 0 : err_set(err, ERR_PARAMS, "Invalid parameters: edits: is empty");
}

static int do_edit(const void *request, struct buf *answer, struct err *err)
{
    return code_unpack(CODE_edit, err) < 0 ? -1 : text_editor_run(request, answer, err);
}

static int carry_out(const struct edit_request *request, const struct work_user *user, struct buf *answer,
                     struct err *err)
{
    if (request->command == EDIT_INSERT && !request->new_str.s && !request->insert_text.s)
        return err_set(err, ERR_PARAMS, "Invalid parameters: new_str: is required");
    return work_as_user(user, do_edit, request, answer, err);
}

static int edit(const struct params_variant *command, const struct work_user *user, struct span params,
                struct buf *answer, struct err *err)
{
    struct edit_request request = {.command = edit_commands[command - commands]};
    bool many = request.command == EDIT_MANY;
    int rc =
        many ? many_unpack(params, &request, err) : params_unpack(&command->table, params, &request, err);
    if (rc == 0)
        rc = carry_out(&request, user, answer, err);
    if (many)
        many_release(&request);
    else
        params_release(&command->table, &request);
    return rc;
}

static int run(struct span params, struct buf *answer, struct err *err)
{
    struct selector s = {.command = {NULL, 0}};
    struct work_user user WORK_USER_AUTO = {0};
    if (params_unpack(&selector_table, params, &s, err) < 0)
        return -1;
    const struct params_variant *command = find_command(&s.command, err);
    int rc = command ? work_user_take(&user, s.run_as_user.name.s ? &s.run_as_user : &s.run_as, err) : -1;
    if (rc == 0)
        rc = edit(command, &user, params, answer, err);
    params_release(&selector_table, &s);
    return rc;
}

static void text_editor(struct rpc_call *call, struct span params, void *ctx)
{
    (void)ctx;
    struct buf answer BUF_AUTO = BUF_INIT;
    struct err err;
    if (run(params, &answer, &err) < 0)
        rpc_fail(call, &err);
    else
        rpc_result_string(call, buf_str(&answer), answer.len);
}

const struct rpc_method text_editor_methods[] = {
    {"text_editor", text_editor, &selector_table, DOC("View and edit files, exactly"),
     DOC("a string: what was done or is there, in words"), DOC("what the file doesn't allow, and why"),
     DOC("text_editor"), commands},
    {0},
};

const struct tool text_editor_tool = {.in_process = text_editor_methods};
