/* What the server answers of sessions: starting and listing them, and which keeper a call is for. */
#include <stddef.h>
#include <string.h>

#include "bash_session.h"
#include "bash_session_keeper.h"
#include "bash_session_params.h"
#include "bash_session_types.h"
#include "commands/server/server.h"

static void put_key(struct buf *out, const char *name)
{
    json_member_string(out, "session_name", name);
}

static void put_opened(struct buf *out, const char *name, const char *word)
{
    buf_addc(out, '{');
    put_key(out, name);
    size_t n = strcspn(word, "\n"), end;
    json_member_text(out, "shell", word, n);
    word += n + (word[n] != '\0');
    end = strcspn(word, "\n");
    if (end > 0)
        json_member_text(out, "recording", word, end);
    buf_adds(out, word + end + (word[end] != '\0')); /* of its walls */
    buf_addc(out, '}');
}

static void new_session(struct rpc_call *call, struct span params, void *ctx)
{
    static const struct new_session_params defaults = NEW_SESSION_DEFAULTS;
    static const struct starting_kind kind = {.params = &session_new_params,
                                              .size = sizeof(struct new_session_params),
                                              .user = offsetof(struct new_session_params, user),
                                              .surroundings =
                                                  offsetof(struct new_session_params, surroundings),
                                              .defaults = &defaults,
                                              .prefix = SESSION_PREFIX,
                                              .start = session_start_in_keeper,
                                              .put_answer = put_opened};
    server_start_keeper(ctx, call, params, &kind);
}

static void list(struct rpc_call *call, struct span params, void *ctx)
{
    static const struct server_listing how = {.prefix = SESSION_PREFIX, .put_key = put_key};
    server_list(ctx, call, params, &how);
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
     DOC("Start a session: a shell on a terminal of its own"),
     DOC("{session_name, shell, enforced?, recording?}"),
     DOC("the directory, the shell or the user can't be used"), DOC("shell_new"), NULL},
    {"bash_session_list", list, NULL, DOC("List the sessions"),
     DOC("an array of {session_name, pid, user, shell, cwd, state, foreground, idle_s, unread_bytes, age_s, "
         "processes, memory_kb, recording?, …}"),
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
