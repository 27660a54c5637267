/* What the server answers of browser sessions: opening and listing them, and what is to be said of those that
 * are gone. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mem.h"
#include "profile.h"
#include "server/server.h"
#include "web_browser.h"
#include "web_params.h"
#include "web_starting.h"

/* ---- new session ---- */

static void starting_free(struct web_starting *s)
{
    params_release(&web_new_session_params, &s->params);
    if (s->as_user)
        user_release(&s->user);
    free(s);
}

static void keeper_is_up(void *arg, pid_t pid, const char *word, const struct err *err)
{
    struct web_starting *s = arg;
    struct buf text BUF_AUTO = BUF_INIT;
    (void)word;
    buf_addc(&text, '{');
    json_member_string(&text, "session_name", s->name);
    buf_addc(&text, '}');
    if (s->call && pid < 0)
        rpc_fail(s->call, err);
    else if (s->call)
        rpc_result(s->call, span_of(&text));
    starting_free(s);
}

static void starting_abandoned(void *arg)
{
    ((struct web_starting *)arg)->call = NULL;
}

static void new_session(struct rpc_call *call, struct span params, void *ctx)
{
    struct web_starting *s = mem_zalloc(sizeof *s);
    struct err err;
    s->call = call;
    if (params_unpack(&web_new_session_params, params, &s->params, &err) < 0) {
        rpc_fail(call, &err);
        free(s);
        return;
    }
    if (user_param_wanted(&s->params.user, &s->user, &s->as_user, &err) < 0) {
        rpc_fail(call, &err);
        starting_free(s);
        return;
    }
    rpc_on_abandon(call, starting_abandoned, s);
    server_next_name(ctx, WEB_PREFIX, s->name);
    server_fork_keeper(ctx, s->name, web_start_in_keeper, s, keeper_is_up, s);
}

/* ---- list ---- */

static void put_listed(struct buf *out, const char *name, struct span status)
{
    if (status.n > 0) {
        buf_add(out, status.s, status.n);
        return;
    }
    buf_addc(out, '{');
    json_member_string(out, "session_name", name);
    json_member_string(out, "state", "stuck");
    buf_addc(out, '}');
}

static void list(struct rpc_call *call, struct span params, void *ctx)
{
    static const struct params_table none = {0};
    static const struct server_listing how = {.prefix = WEB_PREFIX, .put = put_listed};
    struct err err;
    if (params_unpack(&none, params, NULL, &err) < 0)
        rpc_fail(call, &err);
    else
        server_list(ctx, call, &how);
}

/* ---- registration ---- */

static int keeper_of(struct span params, char owner[IPC_NAME_MAX], struct err *err)
{
    struct web_params p = WEB_PARAMS_DEFAULTS;
    if (params_unpack(&web_name_params, params, &p, err) < 0)
        return -1;
    int result = 0;
    char file[IPC_NAME_MAX];
    if (strncmp(p.session_name.s, WEB_PREFIX, sizeof WEB_PREFIX - 1) == 0 &&
        ipc_name(file, p.session_name.s) == 0)
        snprintf(owner, IPC_NAME_MAX, "%s", p.session_name.s);
    else
        result = err_set(err, ERR_TOOL, "there is no browser session '%.100s'; open one with web_new_session",
                         p.session_name.s);
    web_params_release(&p);
    return result;
}

static bool without_keeper(struct rpc_call *call, const char *method, struct span params, const char *owner,
                           int dirfd)
{
    struct err err;
    (void)params;
    bool was_there = ipc_exists(dirfd, owner);
    if (was_there && strcmp(method, "web_close_session") == 0) {
        rpc_null(call);
        return true;
    }
    if (was_there)
        err_set(&err, ERR_TOOL, "the browser session %s has ended; open a new one with web_new_session",
                owner);
    else
        err_set(&err, ERR_TOOL, "there is no browser session '%s'; open one with web_new_session", owner);
    rpc_fail(call, &err);
    return true;
}

static const struct rpc_method server_methods[] = {
    {"web_new_session", new_session, &web_new_session_params, DOC("Start a browser"), DOC("{session_name}"),
     DOC("there is no browser; it can't be started"), DOC("web_go"), NULL},
    {"web_list_sessions", list, NULL, DOC("List the browser sessions"),
     DOC("an array of {session_name, pid, state, user, tabs, url, browser, age_s, processes, memory_kb, …}"),
     NULL, NULL, NULL},
    {0},
};

static const char *const columns[] = {"session_name", "pid",       "state", "user",    "age_s", "tabs",
                                      "processes",    "memory_kb", "url",   "browser", NULL};
static const char *const queries[] = {"web_list_sessions", NULL};

const struct tool web_browser_tool = {
    .server = server_methods,
    .keeper = web_keeper_methods,
    .keeper_of = keeper_of,
    .without_keeper = without_keeper,
    .sweep = profile_sweep,
    .list = {"web_list_sessions", "browser_sessions", columns},
    .queries = queries,
};
