/* The session methods: params in, session calls, results out. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bash_session.h"
#include "bash_session_types.h"
#include "mem.h"
#include "server/server.h"
#include "session.h"
#include "spawn.h"

/* ---- params ---- */

#define AT(struct_name, member) offsetof(struct struct_name, member)

static const struct param new_session_list[] = {
    {.key = "user", .type = PARAM_NAME, .offset = AT(new_session_params, user)},
    {.key = "cwd", .type = PARAM_NAME, .offset = AT(new_session_params, cwd)},
    {.key = "shell", .type = PARAM_NAME, .offset = AT(new_session_params, shell)},
    {.key = "env", .type = PARAM_ENV, .offset = AT(new_session_params, env)},
    {.key = "rows", .type = PARAM_INT, .offset = AT(new_session_params, rows), .min = 1, .max = 32767},
    {.key = "cols", .type = PARAM_INT, .offset = AT(new_session_params, cols), .min = 1, .max = 32767},
};
static const struct params_table new_session_table = PARAMS_TABLE(new_session_list);

#define SECONDS_MAX 1e9

static const struct param interact_list[] = {
    {.key = "session_name",
     .type = PARAM_NAME,
     .offset = AT(interact_params, session_name),
     .required = true},
    {.key = "input", .type = PARAM_TEXT, .offset = AT(interact_params, input)},
    {.key = "wait_for_output",
     .type = PARAM_INT,
     .offset = AT(interact_params, wait_for_output_s),
     .max = SECONDS_MAX},
    {.key = "idle_timeout",
     .type = PARAM_NUMBER,
     .offset = AT(interact_params, idle_timeout_s),
     .max = SECONDS_MAX},
    {.key = "max_output_bytes", .type = PARAM_INT, .offset = AT(interact_params, max_output_bytes)},
    {.key = "restart", .type = PARAM_BOOL, .offset = AT(interact_params, restart)},
};
static const struct params_table interact_table = PARAMS_TABLE(interact_list);

static const struct param run_list[] = {
    {.key = "session_name", .type = PARAM_NAME, .offset = AT(run_params, session_name), .required = true},
    {.key = "command", .type = PARAM_NAME, .offset = AT(run_params, command), .required = true},
    {.key = "timeout", .type = PARAM_NUMBER, .offset = AT(run_params, timeout_s), .max = SECONDS_MAX},
    {.key = "max_output_bytes", .type = PARAM_INT, .offset = AT(run_params, max_output_bytes)},
};
static const struct params_table run_table = PARAMS_TABLE(run_list);

static const struct param resize_list[] = {
    {.key = "session_name", .type = PARAM_NAME, .offset = AT(resize_params, session_name), .required = true},
    {.key = "rows",
     .type = PARAM_INT,
     .offset = AT(resize_params, rows),
     .required = true,
     .min = 1,
     .max = 32767},
    {.key = "cols",
     .type = PARAM_INT,
     .offset = AT(resize_params, cols),
     .required = true,
     .min = 1,
     .max = 32767},
};
static const struct params_table resize_table = PARAMS_TABLE(resize_list);

static const struct param signal_list[] = {
    {.key = "session_name", .type = PARAM_NAME, .offset = AT(signal_params, session_name), .required = true},
    {.key = "signal", .type = PARAM_NAME, .offset = AT(signal_params, signal), .required = true},
};
static const struct params_table signal_table = PARAMS_TABLE(signal_list);

static const struct param close_list[] = {
    {.key = "session_name", .type = PARAM_NAME, .offset = AT(signal_params, session_name), .required = true},
};
static const struct params_table close_table = PARAMS_TABLE(close_list);

static const struct params_table no_params = {0};

/* Unpacks, or answers with what is wrong. */
static bool unpack(struct rpc_call *call, const struct params_table *table, struct span params, void *into)
{
    struct err err;
    if (params_unpack(table, params, into, &err) == 0)
        return true;
    rpc_fail(call, &err);
    return false;
}

/* Absent, 0 and negative mean the default, which is also the most that a session keeps. */
static size_t output_max(long long asked)
{
    return asked <= 0 || asked > SESSION_OUTPUT_MAX ? (size_t)SESSION_OUTPUT_MAX : (size_t)asked;
}

/* ---- the keeper's side: one session ---- */

struct hosted {
    struct session session;
    struct keeper_service *service;
};

/* One call on its way: what the answer's hooks need. */
struct pending {
    struct rpc_call *call;
    struct session *session;
    struct session_call *of_session;
};

static void on_delivered(void *arg, bool delivered)
{
    struct pending *p = arg;
    session_delivered(p->session, p->of_session, delivered);
    free(p);
}

static void on_abandon(void *arg)
{
    struct pending *p = arg;
    session_abandon(p->session, p->of_session);
    free(p);
}

static struct pending *pending_new(struct rpc_call *call, struct session *session)
{
    struct pending *p = mem_zalloc(sizeof *p);
    *p = (struct pending){.call = call, .session = session};
    rpc_on_abandon(call, on_abandon, p);
    rpc_on_delivered(call, on_delivered, p);
    return p;
}

static void read_done(void *arg, struct span text, const struct err *err)
{
    struct pending *p = arg;
    if (err)
        rpc_fail(p->call, err);
    else
        rpc_result_string(p->call, text.s, text.n);
}

static void restarted(void *arg, const struct err *err)
{
    static const char text[] = "shell restarted successfully";
    struct pending *p = arg;
    struct rpc_call *call = p->call;
    free(p);
    if (!call)
        return;
    if (err)
        rpc_fail(call, err);
    else
        rpc_result_string(call, text, sizeof text - 1);
}

static void restart_abandoned(void *arg)
{
    ((struct pending *)arg)->call = NULL;
}

static void restart(struct rpc_call *call, struct session *s)
{
    struct pending *p = mem_zalloc(sizeof *p);
    p->call = call;
    rpc_on_abandon(call, restart_abandoned, p);
    session_restart(s, restarted, p);
}

/* Reads need both times; a restart takes nothing else. */
static int check_interact(const struct interact_params *p, struct err *err)
{
    if (p->restart && p->input.s)
        return err_set(err, ERR_PARAMS, "Invalid parameters: restart: cannot be combined with input");
    if (!p->restart && p->wait_for_output_s < 0)
        return err_set(err, ERR_PARAMS, "Invalid parameters: wait_for_output: is missing");
    if (!p->restart && p->idle_timeout_s < 0)
        return err_set(err, ERR_PARAMS, "Invalid parameters: idle_timeout: is missing");
    return 0;
}

static void interact(struct rpc_call *call, struct span params, void *ctx)
{
    struct hosted *h = ctx;
    struct interact_params p = INTERACT_DEFAULTS;
    struct err err;
    if (!unpack(call, &interact_table, params, &p))
        return;
    if (check_interact(&p, &err) < 0) {
        rpc_fail(call, &err);
    } else if (p.restart) {
        restart(call, &h->session);
    } else {
        struct pending *pending = pending_new(call, &h->session);
        struct read_request r = {
            .input = p.input.s,
            .input_len = p.input.n,
            .wait_ms = p.wait_for_output_s * 1000,
            .idle_ms = (int64_t)(p.idle_timeout_s * 1000),
            .max = output_max(p.max_output_bytes),
        };
        pending->of_session = session_read(&h->session, &r, read_done, pending);
    }
    params_release(&interact_table, &p);
}

static void put_run_result(struct buf *out, const struct run_result *r)
{
    static const char *const states[] = {"completed", "timeout", "awaiting_input", "exited"};
    buf_addc(out, '{');
    json_member_string(out, "state", states[r->state]);
    if (r->has_exit_code) {
        json_member_int(out, "exit_code", r->exit_code);
    } else {
        json_key(out, "exit_code");
        buf_adds(out, "null");
    }
    json_member_text(out, "output", r->output, r->output_len);
    json_member_string(out, "cwd", r->cwd);
    json_member_int(out, "duration_ms", r->duration_ms);
    json_member_int(out, "omitted_bytes", (long long)r->omitted_bytes);
    buf_addc(out, '}');
}

static void run_done(void *arg, const struct run_result *result, const struct err *err)
{
    struct pending *p = arg;
    struct buf text BUF_AUTO = BUF_INIT;
    if (err) {
        rpc_fail(p->call, err);
        return;
    }
    put_run_result(&text, result);
    rpc_result(p->call, span_of(&text));
}

static void run(struct rpc_call *call, struct span params, void *ctx)
{
    struct hosted *h = ctx;
    struct run_params p = RUN_DEFAULTS;
    if (!unpack(call, &run_table, params, &p))
        return;
    struct pending *pending = pending_new(call, &h->session);
    struct run_request r = {
        .command = p.command.s,
        .command_len = p.command.n,
        .timeout_ms = p.timeout_s < 0 ? -1 : (int64_t)(p.timeout_s * 1000),
        .max = output_max(p.max_output_bytes),
    };
    pending->of_session = session_run(&h->session, &r, run_done, pending);
    params_release(&run_table, &p);
}

static void close_session(struct rpc_call *call, struct span params, void *ctx)
{
    struct hosted *h = ctx;
    struct signal_params p = {0};
    if (!unpack(call, &close_table, params, &p))
        return;
    params_release(&close_table, &p);
    keeper_end(h->service, call, KEEPER_CLOSED);
}

static void resize(struct rpc_call *call, struct span params, void *ctx)
{
    struct hosted *h = ctx;
    struct resize_params p = {0};
    struct err err;
    if (!unpack(call, &resize_table, params, &p))
        return;
    if (session_resize(&h->session, (int)p.rows, (int)p.cols, &err) < 0)
        rpc_fail(call, &err);
    else
        rpc_null(call);
    params_release(&resize_table, &p);
}

static void signal_session(struct rpc_call *call, struct span params, void *ctx)
{
    struct hosted *h = ctx;
    struct signal_params p = {0};
    struct err err;
    if (!unpack(call, &signal_table, params, &p))
        return;
    if (session_signal(&h->session, p.signal.s, &err) < 0)
        rpc_fail(call, &err);
    else
        rpc_null(call);
    params_release(&signal_table, &p);
}

static void status(struct rpc_call *call, struct span params, void *ctx)
{
    struct hosted *h = ctx;
    struct session_status s;
    struct buf text BUF_AUTO = BUF_INIT;
    (void)params;
    session_status(&h->session, &s);
    buf_addc(&text, '{');
    json_member_int(&text, "pid", s.pid);
    json_member_string(&text, "user", s.user);
    json_member_string(&text, "shell", s.shell);
    json_member_string(&text, "cwd", *s.cwd ? s.cwd : NULL);
    json_member_string(&text, "state", s.state);
    json_member_string(&text, "foreground", *s.foreground ? s.foreground : NULL);
    json_key(&text, "idle_s");
    buf_addf(&text, "%.3f", s.idle_s);
    json_member_int(&text, "unread_bytes", (long long)s.unread_bytes);
    buf_addc(&text, '}');
    rpc_result(call, span_of(&text));
}

static pid_t hang_up(void *ctx)
{
    return session_hang_up(&((struct hosted *)ctx)->session);
}

/* ---- the server's side ---- */

/* A new session on its way. In the keeper, which is a copy of the server, it is read as it stands here. */
struct opening {
    struct rpc_call *call; /* NULL: the client has gone */
    struct server *server;
    struct new_session_params params;
    struct user user; /* name == NULL and home == NULL: none asked for */
    bool as_user;
    char name[IPC_NAME_MAX];
};

static void opening_free(struct opening *o)
{
    params_release(&new_session_table, &o->params);
    if (o->as_user)
        user_release(&o->user);
    free(o);
}

static int start_in_keeper(struct keeper *k, void *arg, struct err *err)
{
    struct opening *o = arg;
    struct hosted *h = mem_zalloc(sizeof *h);
    struct session_options options = {
        .user = o->as_user ? &o->user : NULL,
        .cwd = o->params.cwd.s,
        .shell = o->params.shell.s,
        .env = spawn_env(k->base.env, o->params.env.list, o->as_user ? &o->user : NULL),
        .start_dir = k->base.start_dir,
        .rows = (unsigned short)o->params.rows,
        .cols = (unsigned short)o->params.cols,
    };
    if (session_start(&h->session, k->base.loop, &options, err) < 0)
        return -1;
    h->service = keeper_serve(k, &bash_session_tool, h, status, hang_up);
    snprintf(k->word, sizeof k->word, "%s", h->session.shell_path);
    return 0;
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

/* Only root may become another user; to ask for the one that the server is already is always fine. */
static int find_user(struct opening *o, struct err *err)
{
    if (!o->params.user.s)
        return 0;
    if (user_lookup(&o->user, o->params.user.s, err) < 0)
        return -1;
    o->as_user = !user_is_self(&o->user);
    if (o->as_user && geteuid() == 0)
        return 0;
    user_release(&o->user);
    if (!o->as_user)
        return 0;
    o->as_user = false;
    return err_set(err, ERR_TOOL, "cannot start a session as '%s': the server does not run as root",
                   o->params.user.s);
}

static void new_session(struct rpc_call *call, struct span params, void *ctx)
{
    struct opening *o = mem_zalloc(sizeof *o);
    struct err err;
    *o = (struct opening){.call = call, .server = ctx, .params = NEW_SESSION_DEFAULTS};
    if (!unpack(call, &new_session_table, params, &o->params)) {
        free(o);
        return;
    }
    if (find_user(o, &err) < 0) {
        rpc_fail(call, &err);
        opening_free(o);
        return;
    }
    rpc_on_abandon(call, opening_abandoned, o);
    server_next_name(o->server, SESSION_PREFIX, o->name);
    server_fork_keeper(o->server, o->name, start_in_keeper, o, keeper_is_up, o);
}

/* ---- list ---- */

struct listing {
    struct rpc_call *call;
};

static void list_replies(void *arg, struct reply *replies, size_t n)
{
    struct listing *l = arg;
    struct buf text BUF_AUTO = BUF_INIT;
    buf_addc(&text, '[');
    for (size_t i = 0; i < n; i++) {
        if (replies[i].result.len < 2)
            continue;
        buf_adds(&text, text.len > 1 ? ",{" : "{");
        json_member_string(&text, "session_name", replies[i].name);
        buf_addc(&text, ',');
        buf_add(&text, replies[i].result.data + 1, replies[i].result.len - 1); /* its members and '}' */
    }
    buf_addc(&text, ']');
    if (l->call)
        rpc_result(l->call, span_of(&text));
    free(l);
}

static void listing_abandoned(void *arg)
{
    ((struct listing *)arg)->call = NULL;
}

static void list(struct rpc_call *call, struct span params, void *ctx)
{
    if (!unpack(call, &no_params, params, NULL))
        return;
    struct listing *l = mem_zalloc(sizeof *l);
    l->call = call;
    rpc_on_abandon(call, listing_abandoned, l);
    server_ask(ctx, SESSION_PREFIX, KEEPER_STATUS, 5000, list_replies, l);
}

/* ---- registration ---- */

/* Which session a call is for; everything else about the params is the keeper's matter. */
static int keeper_of(struct span params, char owner[IPC_NAME_MAX], struct err *err)
{
    static const struct param name_list[] = {
        {.key = "session_name",
         .type = PARAM_NAME,
         .offset = AT(signal_params, session_name),
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
    {"bash_session_new_session", new_session},
    {"bash_session_list", list},
    {0},
};

static const struct rpc_method keeper_methods[] = {
    {"bash_session", interact},
    {"bash_session_run", run},
    {"bash_session_close", close_session},
    {"bash_session_resize", resize},
    {"bash_session_signal", signal_session},
    {0},
};

const struct tool bash_session_tool = {
    .server = server_methods,
    .keeper = keeper_methods,
    .keeper_of = keeper_of,
};
