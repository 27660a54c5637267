/* What the server answers of browser sessions: opening and listing them, and what is to be said of those that
 * are gone. */
#include <stddef.h>

#include "profile.h"
#include "commands/server/server.h"
#include "web_browser.h"
#include "web_keeper.h"
#include "web_params.h"

static void put_key(struct buf *out, const char *name)
{
    json_member_string(out, "session_name", name);
}

static void put_opened(struct buf *out, const char *name, const char *word)
{
    (void)word;
    buf_addc(out, '{');
    put_key(out, name);
    buf_addc(out, '}');
}

static void new_session(struct rpc_call *call, struct span params, void *ctx)
{
    static const struct starting_kind kind = {.params = &web_new_session_params,
                                              .size = sizeof(struct web_session_params),
                                              .user = offsetof(struct web_session_params, user),
                                              .surroundings =
                                                  offsetof(struct web_session_params, surroundings),
                                              .prefix = WEB_PREFIX,
                                              .start = web_start_in_keeper,
                                              .put_answer = put_opened};
    server_start_keeper(ctx, call, params, &kind);
}

static void list(struct rpc_call *call, struct span params, void *ctx)
{
    static const struct server_listing how = {.prefix = WEB_PREFIX, .put_key = put_key};
    server_list(ctx, call, params, &how);
}

/* ---- registration ---- */

static const struct session_kind sessions = {
    .prefix = WEB_PREFIX, .what = "browser", .opens = "web_new_session", .closes = "web_close_session"};

static int keeper_of(struct span params, char owner[IPC_NAME_MAX], struct err *err)
{
    struct web_params p = WEB_PARAMS_DEFAULTS;
    if (params_unpack(&web_name_params, params, &p, err) < 0)
        return -1;
    int result = server_session_owner(&sessions, p.session_name.s, owner, err);
    web_params_release(&p);
    return result;
}

static bool without_keeper(struct rpc_call *call, const char *method, struct span params, const char *owner,
                           int dirfd)
{
    (void)params;
    return server_session_gone(&sessions, call, method, owner, dirfd);
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
