/* What the server answers of MCP servers: launching and listing them, and what is to be said of those that
 * are gone. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mcp.h"
#include "mcp_params.h"
#include "mcp_starting.h"
#include "mem.h"
#include "server/server.h"

/* The number in a keeper's name. */
static long long session_of(const char *owner)
{
    return owner[sizeof MCP_PREFIX - 1] == '_' ? strtoll(owner + sizeof MCP_PREFIX, NULL, 10) : 0;
}

/* ---- launch ---- */

static void starting_free(struct mcp_starting *s)
{
    params_release(&mcp_launch_params, &s->params);
    if (s->as_user)
        user_release(&s->user);
    free(s);
}

static void keeper_is_up(void *arg, pid_t pid, const char *word, const struct err *err)
{
    struct mcp_starting *s = arg;
    struct buf text BUF_AUTO = BUF_INIT;
    (void)word;
    json_put_int(&text, s->session_id);
    if (s->call && pid < 0)
        rpc_fail(s->call, err);
    else if (s->call)
        rpc_result(s->call, span_of(&text));
    starting_free(s);
}

static void launch_abandoned(void *arg)
{
    ((struct mcp_starting *)arg)->call = NULL;
}

static void launch(struct rpc_call *call, struct span params, void *ctx)
{
    struct mcp_starting *s = mem_zalloc(sizeof *s);
    char name[IPC_NAME_MAX];
    struct err err;
    s->call = call;
    if (params_unpack(&mcp_launch_params, params, &s->params, &err) < 0) {
        rpc_fail(call, &err);
        free(s);
        return;
    }
    if (mcp_launch_check(&s->params, &err) < 0 ||
        user_param_wanted(&s->params.user, &s->user, &s->as_user, &err) < 0) {
        rpc_fail(call, &err);
        starting_free(s);
        return;
    }
    rpc_on_abandon(call, launch_abandoned, s);
    server_next_name(ctx, MCP_PREFIX, name);
    s->session_id = session_of(name);
    server_fork_keeper(ctx, name, mcp_start_in_keeper, s, keeper_is_up, s);
}

/* ---- list ---- */

static void put_listed(struct buf *out, const char *name, struct span status)
{
    if (status.n > 0)
        buf_add(out, status.s, status.n);
    else
        buf_addf(out, "{\"session_id\":%lld,\"state\":\"stuck\"}", session_of(name));
}

static void list(struct rpc_call *call, struct span params, void *ctx)
{
    static const struct params_table none = {.ignore_unknown = true};
    static const struct server_listing how = {.prefix = MCP_PREFIX, .put = put_listed};
    struct err err;
    if (params_unpack(&none, params, NULL, &err) < 0)
        rpc_fail(call, &err);
    else
        server_list(ctx, call, &how);
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
        err_set(&err, ERR_TOOL, "MCP server %lld was killed; launch a new one", session_of(owner));
    else
        err_set(&err, ERR_TOOL, "there is no MCP server %lld; launch one first", session_of(owner));
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
