/* version, remote_version, sandbox_tools_shutdown. */
#include <stdlib.h>
#include <unistd.h>

#include "io.h"
#include "log.h"
#include "mem.h"
#include "params.h"
#include "proc.h"
#include "server_internal.h"
#include "user.h"
#include "version.h"

static const struct params_table none = {0};

static bool check_none(struct rpc_call *call, struct span params)
{
    struct err err;
    if (params_unpack(&none, params, NULL, &err) == 0)
        return true;
    rpc_fail(call, &err);
    return false;
}

struct version_params {
    struct text user;
};

static const struct param version_list[] = {
    {.key = "_run_as_user",
     .type = PARAM_NAME,
     .offset = offsetof(struct version_params, user),
     PARAM_DOC("A user that has to be there", "the caller")},
};
static const struct params_table version_table = PARAMS_TABLE(version_list);

/* It is the same text for everybody; but whoever can't be had isn't answered as. */
static int may_be(const struct text *name, struct err *err)
{
    struct user u;
    if (!name->s)
        return 0;
    if (user_lookup(&u, name->s, err) < 0)
        return -1;
    bool can = geteuid() == 0 || user_is_self(&u);
    user_release(&u);
    return can ? 0 : err_set(err, ERR_TOOL, "cannot answer as '%s': not root", name->s);
}

static void version(struct rpc_call *call, struct span params, void *ctx)
{
    struct version_params p = {0};
    struct err err;
    (void)ctx;
    int result = params_unpack(&version_table, params, &p, &err);
    if (result == 0)
        result = may_be(&p.user, &err);
    if (result < 0)
        rpc_fail(call, &err);
    else
        rpc_result_string(call, toolbox_version, strlen(toolbox_version));
    params_release(&version_table, &p);
}

static void remote_version(struct rpc_call *call, struct span params, void *ctx)
{
    (void)ctx;
    if (!check_none(call, params))
        return;
    static struct buf text = BUF_INIT; /* it doesn't change */
    char path[4096];
    if (text.len == 0) {
        if (!proc_link(getpid(), "exe", path, sizeof path))
            snprintf(path, sizeof path, "toolbox");
        buf_addf(&text, "%s %s (build %s), pid %ld", path, toolbox_version, toolbox_build_id, (long)getpid());
    }
    rpc_result_string(call, text.data, text.len);
}

static void put_server(struct buf *out, const struct server *s)
{
    struct user u;
    char path[4096];
    user_of_uid(&u, geteuid());
    buf_addc(out, '{');
    json_member_int(out, "pid", getpid());
    json_member_string(out, "user", u.name);
    json_member_int(out, "uid", (long long)geteuid());
    json_member_string(out, "version", toolbox_version);
    json_member_string(out, "build", toolbox_build_id);
    json_member_string(out, "path", proc_link(getpid(), "exe", path, sizeof path) ? path : NULL);
    json_member_string(out, "directory", s->path);
    if (ipc_name(path, IPC_SERVER) == 0) {
        char *socket MEM_AUTO = mem_printf("%s/%s", s->path, path);
        json_member_string(out, "socket", socket);
    }
    json_member_seconds(out, "age_s", now_ms() - s->started_ms);
    json_member_int_or_null(out, "memory_kb", proc_memory_kb(getpid()));
    json_member_string(out, "log_level", log_level_names[log_current_level()]);
    buf_addc(out, '}');
    user_release(&u);
}

static void put_counters(struct buf *out, const struct server *s)
{
    const struct http_counts c = http_server_counts(s->http);
    buf_addc(out, '{');
    json_member_int(out, "connections", (long long)c.connections);
    json_member_int(out, "open", (long long)c.open);
    json_member_int(out, "strangers", (long long)c.strangers);
    json_member_int(out, "requests", (long long)c.requests);
    json_member_int(out, "refused", (long long)c.refused);
    json_member_int(out, "bytes_in", (long long)c.bytes_in);
    json_member_int(out, "bytes_out", (long long)c.bytes_out);
    json_member_int(out, "keepers", (long long)s->keepers_started);
    buf_addc(out, '}');
}

static void server_status(struct rpc_call *call, struct span params, void *ctx)
{
    struct buf text BUF_AUTO = BUF_INIT;
    if (!check_none(call, params))
        return;
    buf_adds(&text, "{\"server\":");
    put_server(&text, ctx);
    json_key(&text, "counters");
    put_counters(&text, ctx);
    buf_addc(&text, '}');
    rpc_result(call, span_of(&text));
}

struct shutdown {
    struct rpc_call *call; /* NULL: the client has gone, which stops nothing */
};

static void all_ended(void *arg, size_t left)
{
    struct shutdown *s = arg;
    struct err err;
    if (s->call && left > 0) {
        struct buf living BUF_AUTO = BUF_INIT;
        proc_put_living(&living);
        err_set(&err, ERR_TOOL, "%zu processes could not be ended%s; see ps", left, buf_str(&living));
        rpc_fail(s->call, &err);
    } else if (s->call) {
        rpc_null(s->call);
    }
    free(s);
}

static void client_gone(void *arg)
{
    ((struct shutdown *)arg)->call = NULL;
}

static void shutdown_all(struct rpc_call *call, struct span params, void *ctx)
{
    if (!check_none(call, params))
        return;
    struct shutdown *s = mem_zalloc(sizeof *s);
    s->call = call;
    rpc_on_abandon(call, client_gone, s);
    server_end_all(ctx, all_ended, s);
}

/* Within this call: whoever connects or asks from now on is turned away unread, and starts another one. */
void server_leave(struct rpc_call *call, struct span params, void *ctx)
{
    (void)params;
    if (server_is_idle(ctx, 1)) {
        server_clear_sockets(ctx);
        _exit(EXIT_OK);
    }
    rpc_null(call);
}

static const struct rpc_method in_process[] = {
    {"version", version, &version_table, DOC("The version of the program"),
     DOC("a string: MAJOR.MINOR.PATCH"), DOC("no such user"), NULL, NULL},
    {0},
};
static const struct rpc_method methods[] = {
    {"remote_version", remote_version, NULL, DOC("The server's path, version, build and pid"),
     DOC("a string"), NULL, NULL, NULL},
    {"server_status", server_status, NULL, DOC("What the server is, and what it has counted"),
     DOC("{server, counters}"), NULL, NULL, NULL},
    {"sandbox_tools_shutdown", shutdown_all, NULL, DOC("End everything, and the server"), DOC("null"),
     DOC("something could not be ended"), NULL, NULL},
    {0},
};

static const char *const queries[] = {"remote_version", "server_status", NULL};

const struct tool server_tool = {.in_process = in_process, .server = methods, .queries = queries};
