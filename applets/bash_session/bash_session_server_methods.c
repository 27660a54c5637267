/* What the server answers of sessions: starting and listing them, and which keeper a call is for. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bash_session.h"
#include "bash_session_opening.h"
#include "bash_session_params.h"
#include "bash_session_types.h"
#include "mem.h"
#include "server/server.h"

/* ---- new ---- */

static void opening_free(struct opening *o)
{
    params_release(&session_new_params, &o->params);
    if (o->as_user)
        user_release(&o->user);
    free(o);
}

static void put_opened(struct buf *out, const struct opening *o, const char *shell)
{
    buf_addc(out, '{');
    json_member_string(out, "session_name", o->name);
    json_member_string(out, "shell", shell);
    buf_addc(out, '}');
}

static void keeper_is_up(void *arg, pid_t pid, const char *word, const struct err *err)
{
    struct opening *o = arg;
    if (o->call && pid < 0) {
        rpc_fail(o->call, err);
    } else if (o->call) {
        struct buf text BUF_AUTO = BUF_INIT;
        put_opened(&text, o, word);
        rpc_result(o->call, span_of(&text));
    }
    opening_free(o);
}

static void opening_abandoned(void *arg)
{
    ((struct opening *)arg)->call = NULL;
}

static void new_session(struct rpc_call *call, struct span params, void *ctx)
{
    struct opening *o = mem_zalloc(sizeof *o);
    struct err err;
    *o = (struct opening){.call = call, .server = ctx, .params = NEW_SESSION_DEFAULTS};
    if (!session_unpack(call, &session_new_params, params, &o->params)) {
        free(o);
        return;
    }
    if (user_param_wanted(&o->params.user, &o->user, &o->as_user, &err) < 0) {
        rpc_fail(call, &err);
        opening_free(o);
        return;
    }
    rpc_on_abandon(call, opening_abandoned, o);
    server_next_name(o->server, SESSION_PREFIX, o->name);
    server_fork_keeper(o->server, o->name, session_start_in_keeper, o, keeper_is_up, o);
}

/* ---- list ---- */

static void put_listed(struct buf *out, const char *name, struct span status)
{
    buf_addc(out, '{');
    json_member_string(out, "session_name", name);
    if (status.n == 0) {
        buf_adds(out, ",\"state\":\"stuck\"}");
    } else {
        buf_addc(out, ',');
        buf_add(out, status.s + 1, status.n - 1); /* its members and '}' */
    }
}

static void list(struct rpc_call *call, struct span params, void *ctx)
{
    static const struct server_listing how = {.prefix = SESSION_PREFIX, .put = put_listed};
    if (session_unpack(call, &session_no_params, params, NULL))
        server_list(ctx, call, &how);
}

/* ---- registration ---- */

/* Which session a call is for; everything else about the params is the keeper's matter. */
static int keeper_of(struct span params, char owner[IPC_NAME_MAX], struct err *err)
{
    static const struct param name_list[] = {
        {.key = "session_name",
         .type = PARAM_NAME,
         .offset = offsetof(struct signal_params, session_name),
         .required = true},
    };
    static const struct params_table name_table = {.list = name_list, .n = 1, .ignore_unknown = true};
    struct signal_params p = {0};
    if (params_unpack(&name_table, params, &p, err) < 0)
        return -1;
    int result = 0;
    size_t n = strlen(SESSION_PREFIX);
    if (strncmp(p.session_name.s, SESSION_PREFIX, n) != 0 || p.session_name.n >= IPC_NAME_MAX)
        result = err_set(err, ERR_TOOL, "there is no session '%s'; start one first", p.session_name.s);
    else
        snprintf(owner, IPC_NAME_MAX, "%s", p.session_name.s);
    params_release(&name_table, &p);
    return result;
}

static const struct rpc_method server_methods[] = {
    {"bash_session_new_session", new_session, &session_new_params,
     DOC("Start a session: a shell on a terminal of its own"), DOC("{session_name, shell}"),
     DOC("the directory, the shell or the user can't be used"), DOC("shell_new"), NULL},
    {"bash_session_list", list, NULL, DOC("List the sessions"),
     DOC("an array of {session_name, pid, user, shell, cwd, state, foreground, idle_s, unread_bytes, age_s, "
         "processes, memory_kb, …}"),
     NULL, DOC("shell_list"), NULL},
    {0},
};

static const char *const columns[] = {"session_name", "pid",       "user",   "state",
                                      "foreground",   "age_s",     "idle_s", "unread_bytes",
                                      "processes",    "memory_kb", "cwd",    NULL};

const struct tool bash_session_tool = {
    .list = {"bash_session_list", "sessions", columns},
    .server = server_methods,
    .keeper = session_keeper_methods,
    .keeper_of = keeper_of,
    .in_turn = true,
    .moving = MOVES(&session_moving),
};
