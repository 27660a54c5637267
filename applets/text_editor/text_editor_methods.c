#include <stdlib.h>
#include <string.h>

#include "edit_as_user.h"
#include "rpc.h"
#include "text_editor.h"
#include "text_editor_controller.h"

#define FIELD(member) offsetof(struct edit_request, member)

static const struct param view_params[] = {
    {.key = "path", .type = PARAM_TEXT, .offset = FIELD(path), .required = true},
    {.key = "view_range", .type = PARAM_INTS, .offset = FIELD(view_range)},
};
static const struct param create_params[] = {
    {.key = "path", .type = PARAM_TEXT, .offset = FIELD(path), .required = true},
    {.key = "file_text", .type = PARAM_TEXT, .offset = FIELD(file_text), .required = true},
};
static const struct param str_replace_params[] = {
    {.key = "path", .type = PARAM_TEXT, .offset = FIELD(path), .required = true},
    {.key = "old_str", .type = PARAM_TEXT, .offset = FIELD(old_str), .required = true},
    {.key = "new_str", .type = PARAM_TEXT, .offset = FIELD(new_str)},
};
static const struct param insert_params[] = {
    {.key = "path", .type = PARAM_TEXT, .offset = FIELD(path), .required = true},
    {.key = "insert_line", .type = PARAM_INT, .offset = FIELD(insert_line), .required = true},
    {.key = "new_str", .type = PARAM_TEXT, .offset = FIELD(new_str)},
    {.key = "insert_text", .type = PARAM_TEXT, .offset = FIELD(insert_text)},
};
static const struct param undo_params[] = {
    {.key = "path", .type = PARAM_TEXT, .offset = FIELD(path), .required = true},
};

/* Hosts send the keys of every command, most of them null: each command sees its own and ignores the others.
 */
#define COMMAND(array)                                                                                       \
    {                                                                                                        \
        .list = (array), .n = sizeof(array) / sizeof *(array), .ignore_unknown = true                        \
    }

static const struct command {
    const char *name;
    enum edit_command command;
    struct params_table params;
} commands[] = {
    {"view", EDIT_VIEW, COMMAND(view_params)},
    {"create", EDIT_CREATE, COMMAND(create_params)},
    {"str_replace", EDIT_STR_REPLACE, COMMAND(str_replace_params)},
    {"insert", EDIT_INSERT, COMMAND(insert_params)},
    {"undo_edit", EDIT_UNDO, COMMAND(undo_params)},
};

struct selector {
    struct text command;
};
static const struct param selector_params[] = {
    {.key = "command", .type = PARAM_TEXT, .offset = offsetof(struct selector, command), .required = true},
};
static const struct params_table selector_table = COMMAND(selector_params);

static const struct command *select_command(struct span params, struct err *err)
{
    struct selector selector = {{0}};
    const struct command *found = NULL;
    if (params_unpack(&selector_table, params, &selector, err) < 0)
        return NULL;
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (selector.command.n == strlen(commands[i].name) &&
            strcmp(selector.command.s, commands[i].name) == 0)
            found = &commands[i];
    params_release(&selector_table, &selector);
    if (!found)
        err_set(err, ERR_PARAMS,
                "Invalid parameters: command: must be one of view, create, str_replace, insert, undo_edit");
    return found;
}

static int run(const struct command *command, struct span params, struct buf *answer, struct err *err)
{
    struct edit_request request = {.command = command->command};
    struct edit_user user EDIT_USER_AUTO = {0};
    if (edit_user_take(&user, params, err) < 0 || params_unpack(&command->params, params, &request, err) < 0)
        return -1;
    int rc;
    if (request.command == EDIT_INSERT && !request.new_str.s && !request.insert_text.s)
        rc = err_set(err, ERR_PARAMS, "Invalid parameters: new_str: is required");
    else if (user.given)
        rc = edit_as_user(&user, &request, answer, err);
    else
        rc = text_editor_run(&request, answer, err);
    params_release(&command->params, &request);
    return rc;
}

static void text_editor(struct rpc_call *call, struct span params, void *ctx)
{
    (void)ctx;
    struct buf answer BUF_AUTO = BUF_INIT;
    struct err err;
    const struct command *command = select_command(params, &err);
    if (!command || run(command, params, &answer, &err) < 0)
        rpc_fail(call, &err);
    else
        rpc_result_string(call, buf_str(&answer), answer.len);
}

const struct rpc_method text_editor_methods[] = {
    {"text_editor", text_editor},
    {NULL, NULL},
};

const struct tool text_editor_tool = {.in_process = text_editor_methods};
