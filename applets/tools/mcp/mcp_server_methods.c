/* What the server answers of MCP servers: launching and listing them, and what is to be said of those that
 * are gone. */
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "mcp.h"
#include "mcp_keeper.h"
#include "mcp_params.h"
#include "commands/server/server.h"

/* ---- launch ---- */

static void put_launched(struct buf *out, const char *name, const char *word)
{
    (void)word;
    json_put_int(out, mcp_session_of(name));
}

static void launch(struct rpc_call *call, struct span params, void *ctx)
{
    static const struct mcp_launch_params defaults = MCP_LAUNCH_DEFAULTS;
    static const struct starting_kind kind = {.defaults = &defaults,
                                              .params = &mcp_launch_params,
                                              .size = sizeof(struct mcp_launch_params),
                                              .user = offsetof(struct mcp_launch_params, user),
                                              .check = mcp_launch_check,
                                              .prefix = MCP_PREFIX,
                                              .start = mcp_start_in_keeper,
                                              .put_answer = put_launched};
    server_start_keeper(ctx, call, params, &kind);
}

/* ---- list ---- */

static void put_key(struct buf *out, const char *name)
{
    json_member_int(out, "session_id", mcp_session_of(name));
}

static void list(struct rpc_call *call, struct span params, void *ctx)
{
    static const struct server_listing how = {
        .prefix = MCP_PREFIX, .ignore_unknown = true, .put_key = put_key};
    server_list(ctx, call, params, &how);
}

/* ---- registration ---- */

static int keeper_of(struct span params, char owner[IPC_NAME_MAX], struct err *err)
{
    struct mcp_session_params p = MCP_SESSION_DEFAULTS;
    if (params_unpack(&mcp_session_params, params, &p, err) < 0)
        return -1;
    if (p.session_id < 0 || p.session_id > INT_MAX)
        return err_set(err, ERR_TOOL, "there is no MCP server %lld; launch one first", p.session_id);
    if (p.session_id == 0)
        snprintf(owner, IPC_NAME_MAX, "%s", MCP_PREFIX);
    else
        snprintf(owner, IPC_NAME_MAX, "%s_%lld", MCP_PREFIX, p.session_id);
    return 0;
}

/* To kill one that has been killed is nothing to complain of: the answer of the first time may have got lost.
 */
static bool without_keeper(struct rpc_call *call, const char *method, struct span params, const char *owner,
                           int dirfd)
{
    struct err err;
    (void)params;
    bool was_there = ipc_exists(dirfd, owner);
    if (was_there && strcmp(method, "mcp_kill_server") == 0) {
        rpc_null(call);
        return true;
    }
    if (was_there)
        err_set(&err, ERR_TOOL, "MCP server %lld was killed; launch a new one", mcp_session_of(owner));
    else
        err_set(&err, ERR_TOOL, "there is no MCP server %lld; launch one first", mcp_session_of(owner));
    rpc_fail(call, &err);
    return true;
}

static const struct rpc_method server_methods[] = {
    {"mcp_launch_server", launch, &mcp_launch_params,
     DOC("Start an MCP server that speaks on stdin and stdout"), DOC("the number of its session, from 0"),
     DOC("the program, the directory or the user can't be used"), NULL, NULL},
    {"mcp_list_servers", list, NULL, DOC("List the MCP servers"),
     DOC("an array of {session_id, pid, command, user, state, exit_code, initialized, open_requests, "
         "unread_notifications, dropped_lines, stderr, …}"),
     NULL, NULL, NULL},
    {0},
};

static const char *const columns[] = {"session_id", "pid",       "state",         "exit_code",
                                      "user",       "age_s",     "open_requests", "unread_notifications",
                                      "processes",  "memory_kb", "command",       NULL};
static const char *const queries[] = {"mcp_list_servers", NULL};

const struct tool mcp_tool = {
    .server = server_methods,
    .keeper = mcp_keeper_methods,
    .keeper_of = keeper_of,
    .without_keeper = without_keeper,
    .list = {"mcp_list_servers", "mcp_servers", columns},
    .queries = queries,
};
