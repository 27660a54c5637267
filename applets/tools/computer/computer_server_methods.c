/* What the server answers of desktops: opening and listing them, and what is to be said of those that are
 * gone. */
#include <stddef.h>
#include <stdlib.h>

#include "computer.h"
#include "computer_keeper.h"
#include "computer_params.h"
#include "commands/server/server.h"

static void put_key(struct buf *out, const char *name)
{
    json_member_string(out, "session_name", name);
}

static void put_opened(struct buf *out, const char *name, const char *word)
{
    buf_addc(out, '{');
    put_key(out, name);
    buf_addf(out, ",%s}", word);
}

static void new_session(struct rpc_call *call, struct span params, void *ctx)
{
    static const struct computer_session_params defaults = COMPUTER_SESSION_DEFAULTS;
    static const struct starting_kind kind = {.params = &computer_new_session_params,
                                              .size = sizeof(struct computer_session_params),
                                              .user = offsetof(struct computer_session_params, user),
                                              .surroundings =
                                                  offsetof(struct computer_session_params, surroundings),
                                              .defaults = &defaults,
                                              .prefix = COMPUTER_PREFIX,
                                              .start = computer_start_in_keeper,
                                              .put_answer = put_opened};
    server_start_keeper(ctx, call, params, &kind);
}

static void list(struct rpc_call *call, struct span params, void *ctx)
{
    static const struct server_listing how = {.prefix = COMPUTER_PREFIX, .put_key = put_key};
    server_list(ctx, call, params, &how);
}

static const struct session_kind sessions = {.prefix = COMPUTER_PREFIX,
                                             .what = "desktop",
                                             .opens = "computer_new_session",
                                             .closes = "computer_close_session"};

static int keeper_of(struct span params, char owner[IPC_NAME_MAX], struct err *err)
{
    struct text name = {0};
    if (params_unpack(&computer_name_params, params, &name, err) < 0)
        return -1;
    int result = server_session_owner(&sessions, name.s, owner, err);
    free(name.s);
    return result;
}

static bool without_keeper(struct rpc_call *call, const char *method, struct span params, const char *owner,
                           int dirfd)
{
    (void)params;
    return server_session_gone(&sessions, call, method, owner, dirfd);
}

static const struct rpc_method server_methods[] = {
    {"computer_new_session", new_session, &computer_new_session_params,
     DOC("Connect to a display, or start Xvfb with a window manager"),
     DOC("{session_name, display, width, height}"),
     DOC("there is no display, and no Xvfb; it can't be started or refuses us"), DOC("computer"), NULL},
    {"computer_list_sessions", list, NULL, DOC("List the desktops' sessions"),
     DOC("an array of {session_name, pid, state, user, display, width, height, depth, window_manager, age_s, "
         "processes, "
         "memory_kb, …}"),
     NULL, NULL, NULL},
    {0},
};

static const char *const columns[] = {"session_name", "pid",       "state",          "user",
                                      "age_s",        "display",   "width",          "height",
                                      "processes",    "memory_kb", "window_manager", NULL};
static const char *const queries[] = {"computer_list_sessions", NULL};

const struct tool computer_tool = {
    .server = server_methods,
    .keeper = computer_keeper_methods,
    .keeper_of = keeper_of,
    .without_keeper = without_keeper,
    .list = {"computer_list_sessions", "desktops", columns},
    .queries = queries,
};
