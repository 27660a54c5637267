/* The command line of MCP servers. */
#include "mcp.h"

#include <string.h>

#include "command.h"
#include "commands/exec/command_print.h"
#include "commands/exec/caller.h"
#include "commands/exec/route.h"
#include "mcp_client.h"
#include "mcp_print.h"
#include "mcp_remote.h"
#include "mem.h"
#include "commands/mcp_serve/mcp_serve.h"
#include "surroundings.h"
#include "words.h"

/* The session that the first word names. */
static int session_of(const struct command_line *c, struct mcp_client *client)
{
    *client = (struct mcp_client){.session = c->words[0]};
    size_t n = strlen(client->session);
    if (n == 0 || n > 9 || strspn(client->session, "0123456789") != n || (n > 1 && *client->session == '0'))
        return usage_error(c->applet->name, "'%s' is no number of a session; see 'toolbox mcp list'",
                           client->session);
    return EXIT_OK;
}

/* ---- commands ---- */

static int do_launch(const struct command_line *c)
{
    struct buf params BUF_AUTO = BUF_INIT;
    struct buf session BUF_AUTO = BUF_INIT;
    struct env_words env ENV_WORDS_AUTO = {0};
    struct err err;
    bool own = !command_value(c, "user");
    if (command_check_program(c) != EXIT_OK || env_words_given(&env, c) != EXIT_OK)
        return EXIT_USAGE;
    buf_adds(&params, "{\"server_params\":{");
    json_member_string(&params, "command", c->words[0]);
    json_key(&params, "args");
    command_put_words(c, 1, &params);
    if (own || env.n > 0)
        surroundings_put_env(&params, own, env.list);
    command_put_string(c, "cwd", &params, "cwd");
    if (own && !command_value(c, "cwd"))
        surroundings_put_cwd(&params);
    buf_addc(&params, '}');
    command_put_string(c, "user", &params, "user");
    buf_addc(&params, '}');
    if (call_method("mcp_launch_server", span_of(&params), &session, &err) < 0)
        return command_failed(c, &err);
    return command_print_line(c, span_of(&session));
}

static int do_tools(const struct command_line *c)
{
    struct buf found BUF_AUTO = BUF_INIT;
    struct buf text BUF_AUTO = BUF_INIT;
    struct mcp_client client;
    struct err err;
    int result = session_of(c, &client);
    if (result != EXIT_OK)
        return result;
    if (mcp_client_begin(&client, &err) < 0 || mcp_client_tools(&client, &found, &err) < 0)
        return command_failed(c, &err);
    if (command_value(c, "json"))
        return command_print_line(c, span_of(&found));
    mcp_print_tools(span_of(&found), &text);
    return text.len > 0 ? command_print_line(c, span_of(&text)) : EXIT_OK;
}

static int read_arguments(const struct command_line *c, struct buf *arguments)
{
    int status = words_params(c->applet->name, c->words + 2, c->n_words - 2, arguments);
    if (status == EXIT_OK && json_kind(span_of(arguments)) != JSON_OBJECT)
        return usage_error(c->applet->name, "the arguments are no JSON object");
    return status;
}

static int print_answer(const struct command_line *c, const struct buf *answer)
{
    struct buf text BUF_AUTO = BUF_INIT;
    bool is_error = mcp_print_result(span_of(answer), &text);
    bool json = command_value(c, "json");
    int result = EXIT_OK;
    if (json || text.len > 0)
        result = command_print_line(c, json ? span_of(answer) : span_of(&text));
    return result == EXIT_OK && is_error ? EXIT_FAILED : result;
}

static int do_call(const struct command_line *c)
{
    struct buf arguments BUF_AUTO = BUF_INIT;
    struct buf params BUF_AUTO = BUF_INIT;
    struct buf answer BUF_AUTO = BUF_INIT;
    struct mcp_client client;
    struct err err;
    int result = session_of(c, &client);
    if (result == EXIT_OK)
        result = read_arguments(c, &arguments);
    if (result != EXIT_OK)
        return result;
    buf_addc(&params, '{');
    json_member_string(&params, "name", c->words[1]);
    json_key(&params, "arguments");
    buf_add(&params, arguments.data, arguments.len);
    buf_addc(&params, '}');
    caller_watch();
    if (mcp_client_begin(&client, &err) < 0 ||
        mcp_client_ask(&client, "tools/call", span_of(&params), &answer, &err) < 0)
        return command_failed(c, &err);
    return print_answer(c, &answer);
}

static int do_kill(const struct command_line *c)
{
    struct buf params BUF_AUTO = BUF_INIT;
    struct buf answer BUF_AUTO = BUF_INIT;
    struct mcp_client client;
    struct err err;
    int result = session_of(c, &client);
    if (result != EXIT_OK)
        return result;
    buf_addf(&params, "{\"session_id\":%s}", client.session);
    return call_method("mcp_kill_server", span_of(&params), &answer, &err) < 0 ? command_failed(c, &err)
                                                                               : EXIT_OK;
}

#ifndef TOOLBOX_GUEST /* no name is looked up there, and nothing encrypted */
static int do_remote(const struct command_line *c)
{
    struct err err;
    const char **headers MEM_AUTO = mem_zalloc((c->n_words + 1) * sizeof *headers);
    for (size_t i = 1; i < (size_t)c->n_words; i++)
        headers[i - 1] = c->words[i];
    if (mcp_remote(c->words[0], headers, &err) == 0)
        return EXIT_OK;
    return err.code == ERR_PARAMS ? usage_error(c->applet->name, "%s", err.msg) : command_failed(c, &err);
}
#endif

/* ---- the table ---- */

static const struct command_option options[] = {
    ENV_WORDS_OPTIONS,
    {"cwd", "DIR", "where it begins (here)", 0},
    {"user", "USER", "whom it runs as (the server's user)", 0},
    COMMAND_LIST_OPTIONS,
    {0},
};

static const struct command list[] = {
    {"launch", "[--] PROGRAM [ARGUMENT]...", ENV_WORDS_TAKES " cwd user",
     "start an MCP server that speaks on stdin and stdout, and print the number of its session",
     "It begins in the current directory with the current environment, unless it runs as another user.",
     "uvx mcp-server-time", 1, COMMAND_PROGRAM, do_launch, NULL},
    {"list", "", COMMAND_LIST_TAKES, "show the servers that were launched", NULL, "", 0, 0,
     command_print_list, NULL},
    {"tools", "SESSION", "json", "show what a server offers, and what each tool takes", NULL, "0", 1, 1,
     do_tools, NULL},
    {"call", "SESSION TOOL [PARAM]...", "json", "call a tool and print what it answers",
     "The status is 1 when the tool says that it failed.\n\n" WORDS_PARAMS_HELP,
     "0 get_current_time timezone=UTC", 2, COMMAND_ANY, do_call, NULL},
    {"kill", "SESSION", NULL, "close a server's stdin, and end what then still runs of it", NULL, "0", 1, 1,
     do_kill, NULL},
#ifndef TOOLBOX_GUEST
    {"remote", "URL [HEADER]...", NULL, "be, on stdin and stdout, the MCP server that URL leads to",
     "For clients that can start a server and know no HTTP. A HEADER is 'Name: value'; more of them, one a "
     "line, "
     "can stand in $TOOLBOX_MCP_HEADERS, where others don't see them.",
     "http://127.0.0.1:8931/mcp", 1, COMMAND_ANY, do_remote, NULL},
#endif
    {"serve", "", NULL, "be an MCP server on stdin and stdout, or over HTTP", NULL, NULL, 0, 0, NULL,
     mcp_serve_main},
    {0},
};

static const char *const words[][2] = {
    {"(mcp_kill_server)", "('toolbox mcp kill')"},
    {0},
};
static const char *const params_said[][2] = {
    {"server_params.command", "PROGRAM"},
    {"server_params.cwd", "--cwd"},
    {"server_params.env", "--env"},
    {0},
};

static const struct command_set commands = {
    .packed = true,
    .about = "MCP servers of this container, and this container as one.",
    .options = options,
    .list = list,
    .tool = &mcp_tool,
    .words = words,
    .params = params_said,
};

const struct applet mcp_applet = {
    .name = "mcp",
    .summary = "talk to MCP servers in this container, or be one",
    .commands = &commands,
};
