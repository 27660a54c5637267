/* The method of those who watch what begins and ends; what it does is the server's (server_watch.c). */
#include <stddef.h>

#include "server_internal.h"

struct watch_params {
    long long cursor; /* < 0: none */
};

static const struct param watch_list[] = {
    {.key = "cursor",
     .type = PARAM_INT,
     .offset = offsetof(struct watch_params, cursor),
     PARAM_DOC("That of the last event that was received",
               "from now on, and the first answer comes at once")},
};
static const struct params_table watch_table = PARAMS_TABLE(watch_list);

static void watch(struct rpc_call *call, struct span params, void *ctx)
{
    struct watch_params p = {.cursor = -1};
    struct err err;
    if (params_unpack(&watch_table, params, &p, &err) < 0)
        rpc_fail(call, &err);
    else
        server_watch(ctx, call, p.cursor);
}

static const struct rpc_method methods[] = {
    {"server_watch", watch, &watch_table,
     DOC("Sessions, jobs, MCP servers and browsers as they begin and end, over a stream each as an event"),
     DOC("{cursor, ended, dropped, events}"), NULL, NULL, NULL},
    {0},
};

const struct tool watch_tool = {.server = methods};
