/* The methods of one MCP server, in its keeper: params in, calls of the bridge, results out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mcp.h"
#include "mcp_bridge.h"
#include "mcp_params.h"
#include "mcp_keeper.h"
#include "mcp_remote.h"
#include "mem.h"
#include "relocate.h"
#include "self.h"
#include "commands/server/server.h"

#define LINE_MAX_DEFAULT (256u << 20)
#define LINE_MAX_VARIABLE "INSPECT_MCP_READLINE_LIMIT_BYTES"
#define EOF_GRACE_MS 2000 /* for a server to end by itself when its stdin is closed */
#define COMMAND_SHOWN 200 /* bytes of a command in the list */
#define LOG_SHOWN 2000    /* and of its stderr */

struct hosted {
    struct mcp_bridge bridge;
    struct keeper_service *service;
    long long session_id;
    char *command, *user;
    struct rpc_call *follower;             /* waits for what the server says; NULL: none */
    unsigned long long told, told_dropped; /* the last that one was given */
    struct confine *walls;                 /* NULL: none */
    struct rpc_call *answerer;             /* waits for what the server asks for; NULL: none */
    struct loop_source *answer_timer;
    long long answer_max;
    struct rpc_call *kill; /* waits for the end; NULL: none, or its client has gone */
    struct loop_source *kill_timer;
};

/* Unpacks, or answers with what is wrong. */
static bool unpack(struct rpc_call *call, const struct params_table *table, struct span params,
                   struct mcp_session_params *p)
{
    *p = (struct mcp_session_params)MCP_SESSION_DEFAULTS;
    return rpc_unpack(call, table, params, p);
}

static void send_request(struct rpc_call *call, struct span params, void *ctx)
{
    struct hosted *h = ctx;
    struct mcp_session_params p;
    if (unpack(call, &mcp_request_params, params, &p))
        mcp_bridge_request(&h->bridge, call, p.request, p.timeout < 0 ? -1 : (long long)(p.timeout * 1000));
}

static void send_notification(struct rpc_call *call, struct span params, void *ctx)
{
    struct hosted *h = ctx;
    struct mcp_session_params p;
    struct err err;
    if (!unpack(call, &mcp_notification_params, params, &p))
        return;
    if (mcp_bridge_notify(&h->bridge, p.notification, &err) < 0)
        rpc_fail(call, &err);
    else
        rpc_null(call);
}

static void send_response(struct rpc_call *call, struct span params, void *ctx)
{
    struct hosted *h = ctx;
    struct mcp_session_params p;
    struct err err;
    if (!unpack(call, &mcp_response_params, params, &p))
        return;
    if (mcp_bridge_respond(&h->bridge, p.response, &err) < 0)
        rpc_fail(call, &err);
    else
        rpc_null(call);
}

/* ---- notifications ---- */

/* What an answer has given, until it is known to have arrived. */
struct reading {
    struct mcp_notes *notes;
    unsigned long long number, dropped;
};

static void read_delivered(void *arg, bool delivered)
{
    struct reading *r = arg;
    if (delivered)
        mcp_notes_forget(r->notes, r->number, r->dropped);
    free(r);
}

static void give(struct rpc_call *call, struct mcp_notes *notes, const char *key, long long max)
{
    struct buf text BUF_AUTO = BUF_INIT;
    struct reading *r = mem_alloc(sizeof *r);
    *r = (struct reading){.notes = notes, .dropped = notes->dropped};
    buf_addc(&text, '{');
    r->number = mcp_notes_put(notes, key, max < 0 ? (long long)notes->n : max, &text);
    buf_addc(&text, '}');
    rpc_on_delivered(call, read_delivered, r);
    rpc_result_take(call, &text, 0);
}

static void read_notifications(struct rpc_call *call, struct span params, void *ctx)
{
    struct hosted *h = ctx;
    struct mcp_session_params p;
    if (unpack(call, &mcp_read_params, params, &p))
        give(call, &h->bridge.notes, "notifications", p.max);
}

/* ---- what the server asks for ---- */

static void give_asked(void *arg)
{
    struct hosted *h = arg;
    struct rpc_call *call = h->answerer;
    loop_drop(&h->answer_timer);
    h->answerer = NULL;
    if (call)
        give(call, &h->bridge.asked, "requests", h->answer_max);
}

static void answerer_gone(void *arg)
{
    struct hosted *h = arg;
    h->answerer = NULL;
    loop_drop(&h->answer_timer);
}

/* From the first such call on what it asks for waits for an answer. One waits at a time, the last who came.
 */
static void read_requests(struct rpc_call *call, struct span params, void *ctx)
{
    struct hosted *h = ctx;
    struct mcp_session_params p;
    if (!unpack(call, &mcp_requests_params, params, &p))
        return;
    h->bridge.answers = true;
    if (h->answerer)
        give_asked(h);
    h->answerer = call;
    h->answer_max = p.max;
    rpc_on_abandon(call, answerer_gone, h);
    if (p.timeout > 0 && h->bridge.asked.n == 0 && !h->bridge.process.end.over)
        h->answer_timer =
            loop_timer(h->bridge.process.loop, (long long)(p.timeout * 1000) + 1, give_asked, h);
    else
        give_asked(h);
}

static void on_noted(void *arg)
{
    struct hosted *h = arg;
    const struct mcp_notes *notes = &h->bridge.notes;
    struct rpc_call *call = h->follower;
    struct buf text BUF_AUTO = BUF_INIT;
    bool ended = h->bridge.process.end.over;
    if (h->answerer && (h->bridge.asked.n > 0 || ended))
        give_asked(h);
    if (!call || (notes->n == 0 && !ended))
        return;
    h->follower = NULL;
    h->told_dropped = notes->dropped;
    buf_addc(&text, '{');
    h->told = mcp_notes_put(notes, "notifications", (long long)notes->n, &text);
    json_member_int(&text, "cursor", (long long)h->told);
    json_member_bool(&text, "ended", ended);
    buf_addc(&text, '}');
    rpc_result_take(call, &text, 0);
}

static void follower_gone(void *arg)
{
    ((struct hosted *)arg)->follower = NULL;
}

/* One at a time, the last who came. */
static void follow(struct rpc_call *call, struct span params, void *ctx)
{
    struct hosted *h = ctx;
    struct mcp_session_params p;
    struct rpc_call *before = h->follower;
    struct err err;
    if (!unpack(call, &mcp_follow_params, params, &p))
        return;
    unsigned long long cursor = (unsigned long long)p.cursor;
    mcp_notes_forget(&h->bridge.notes, cursor, cursor == h->told ? h->told_dropped : 0);
    h->told_dropped = cursor == h->told ? 0 : h->told_dropped;
    h->bridge.followed = true;
    h->follower = call;
    rpc_on_abandon(call, follower_gone, h);
    err_set(&err, ERR_TOOL, "another client follows MCP server %lld now", h->session_id);
    if (before)
        rpc_fail(before, &err);
    on_noted(h);
}

/* ---- kill ---- */

static void end_all(void *arg)
{
    struct hosted *h = arg;
    struct rpc_call *call = h->kill;
    loop_drop(&h->kill_timer);
    h->kill = NULL;
    keeper_end(h->service, call, KEEPER_CLOSED);
}

static void on_reaped(void *arg)
{
    struct hosted *h = arg;
    if (h->kill_timer)
        end_all(h);
}

static void kill_abandoned(void *arg)
{
    ((struct hosted *)arg)->kill = NULL; /* what it began runs on */
}

static void kill_server(struct rpc_call *call, struct span params, void *ctx)
{
    struct hosted *h = ctx;
    struct mcp_session_params p;
    if (!unpack(call, &mcp_session_params, params, &p))
        return;
    if (h->bridge.killed) {
        struct err err;
        err_set(&err, ERR_TOOL, "MCP server %lld is ending already", h->session_id);
        rpc_fail(call, &err);
        return;
    }
    mcp_bridge_hang_up(&h->bridge);
    h->kill = call;
    rpc_on_abandon(call, kill_abandoned, h);
    h->kill_timer = loop_timer(h->bridge.process.loop, EOF_GRACE_MS, end_all, h);
    if (h->bridge.process.end.reaped)
        end_all(h);
}

static pid_t hang_up(void *ctx)
{
    struct hosted *h = ctx;
    loop_drop(&h->kill_timer);
    mcp_bridge_hang_up(&h->bridge);
    return h->bridge.process.pid;
}

/* ---- status ---- */

static void put_exit(struct buf *out, const struct mcp_process *process)
{
    json_key(out, "exit_code");
    if (!process->end.reaped)
        buf_adds(out, "null");
    else
        json_put_int(out, WIFSIGNALED(process->end.status) ? -WTERMSIG(process->end.status)
                                                           : WEXITSTATUS(process->end.status));
}

/* What holds it, and what it met of that. */
static void put_walls(struct buf *out, const struct hosted *h, const struct buf *log)
{
    char refused[CONFINE_SAID] = "";
    enum confine_what met = h->bridge.process.end.reaped
                                ? walls_limit_met(h->walls, h->bridge.process.end.status)
                                : CONFINE_PARTS;
    walls_put(out, h->walls);
    walls_look(h->walls, NULL, buf_str(log), log->len, refused);
    if (met != CONFINE_PARTS)
        json_member_string(out, "limit", confine_name(met));
    if (*refused)
        json_member_string(out, "refused", refused);
}

static void status(struct rpc_call *call, struct span params, void *ctx)
{
    const struct hosted *h = ctx;
    const struct mcp_bridge *b = &h->bridge;
    struct buf text BUF_AUTO = BUF_INIT;
    struct buf log BUF_AUTO = BUF_INIT;
    (void)params;
    mcp_process_put_log(&b->process, LOG_SHOWN, &log);
    buf_addc(&text, '{');
    json_member_int(&text, "pid", b->process.pid);
    json_member_string(&text, "command", h->command);
    json_member_string(&text, "user", h->user);
    json_member_string(&text, "state", b->process.end.over || b->process.deaf ? "ended" : "running");
    put_exit(&text, &b->process);
    json_member_bool(&text, "initialized", b->initialized);
    json_member_int(&text, "open_requests", (long long)b->requests.n_open);
    json_member_int(&text, "unread_notifications", (long long)b->notes.n);
    json_member_int(&text, "dropped_lines", (long long)b->broken.dropped);
    json_member_text(&text, "stderr", buf_str(&log), log.len);
    put_walls(&text, h, &log);
    keeper_put_usage(&text, h->service);
    buf_addc(&text, '}');
    rpc_result(call, span_of(&text));
}

/* ---- launch ---- */

static size_t line_max(void)
{
    const char *text = getenv(LINE_MAX_VARIABLE);
    char *end = NULL;
    unsigned long long n = text ? strtoull(text, &end, 10) : 0;
    return n > 0 && *end == '\0' && *text != '-' && n < BUF_NO_MAX / 4 ? (size_t)n : LINE_MAX_DEFAULT;
}

static char **argv_of(const struct mcp_launch_params *p)
{
    char **argv = mem_alloc((p->args.n + 2) * sizeof *argv);
    argv[0] = p->command.s;
    for (size_t i = 0; i < p->args.n; i++)
        argv[1 + i] = p->args.list[i];
    argv[1 + p->args.n] = NULL;
    return argv;
}

/* The first bytes of a command line. */
static char *shown(char *const *argv)
{
    struct buf text = BUF_INIT;
    for (char *const *word = argv; *word && text.len < COMMAND_SHOWN; word++)
        buf_addf(&text, "%s%.*s", word > argv ? " " : "", COMMAND_SHOWN, *word);
    return buf_take(&text, NULL);
}

#ifndef TOOLBOX_GUEST
/* As `toolbox mcp remote` takes them (mcp_remote.h). */
static char *headers_of(const struct mcp_launch_params *p)
{
    struct buf text = BUF_INIT;
    buf_adds(&text, MCP_REMOTE_HEADERS "=");
    for (size_t i = 0; i < p->headers.n; i++) {
        const char *name = p->headers.list[i], *value = strchr(name, '=');
        buf_addf(&text, "%.*s: %s\n", (int)(value - name), name, value + 1);
    }
    return buf_take(&text, NULL);
}

/* A server with a url is spoken to by this program. */
static int start_remote(struct hosted *h, struct keeper *k, const struct starting *s, struct err *err)
{
    const struct mcp_launch_params *p = s->params;
    char *self MEM_AUTO = self_path(), *headers MEM_AUTO = headers_of(p);
    char *argv[] = {self, (char *)"mcp", (char *)"remote", p->url.s, NULL}, *more[] = {headers, NULL};
    const char *programs[] = {self, NULL};
    if (!self)
        return err_set(err, ERR_TOOL, "this program can't be found");
    char **env = spawn_env(k->base.env, more, s->user);
    struct spawn spawn = {.programs = programs,
                          .argv = argv,
                          .env = env,
                          .start_dir = k->base.start_dir,
                          .user = s->user,
                          .confine = h->walls,
                          .victim = true};
    h->command = mem_strdup(p->url.s);
    int result = mcp_bridge_start(&h->bridge, k->base.loop, &spawn, line_max(), err);
    spawn_env_free(env);
    return result;
}
#else
static int start_remote(struct hosted *h, struct keeper *k, const struct starting *s, struct err *err)
{
    (void)h, (void)k, (void)s;
    return err_set(err, ERR_TOOL, "this build of toolbox, which others inject, reaches no server by a url");
}
#endif

static int start_server(struct hosted *h, struct keeper *k, const struct starting *s, struct err *err)
{
    const struct mcp_launch_params *p = s->params;
    if (walls_make(k, &p->walls, p->cwd.s, &h->walls, err) < 0)
        return -1;
    h->bridge.ascii = mcp_launch_is_ascii(p);
    h->bridge.bad_bytes = mcp_launch_bad_bytes(p);
    h->bridge.owner.noted = on_noted;
    h->bridge.owner.reaped = on_reaped;
    h->bridge.owner.arg = h;
    h->user = user_label(s->user ? s->user->uid : geteuid());
    if (p->url.n > 0)
        return start_remote(h, k, s, err);
    char **argv MEM_AUTO = argv_of(p);
    /* What is given is all that it sees, and where another user is at home. */
    char *home MEM_AUTO = s->user ? mem_printf("HOME=%s", s->user->home) : NULL;
    char *at_home[] = {home, NULL};
    char **env = p->env.list ? spawn_env(at_home, p->env.list, NULL) : spawn_env(k->base.env, NULL, s->user);
    const char *programs[] = {p->command.s, NULL};
    struct spawn spawn = {
        .programs = programs,
        .argv = argv,
        .env = env,
        .path = spawn_env_get(spawn_env_get(env, "PATH") ? env : k->base.env, "PATH"),
        .cwd = p->cwd.s,
        .start_dir = k->base.start_dir,
        .user = s->user,
        .confine = h->walls,
        .victim = true,
    };
    h->command = shown(argv);
    int result = mcp_bridge_start(&h->bridge, k->base.loop, &spawn, line_max(), err);
    if (result < 0)
        err_of_setting(err);
    spawn_env_free(env);
    return result;
}

long long mcp_session_of(const char *owner)
{
    return owner[sizeof MCP_PREFIX - 1] == '_' ? strtoll(owner + sizeof MCP_PREFIX, NULL, 10) : 0;
}

int mcp_start_in_keeper(struct keeper *k, void *arg, struct err *err)
{
    const struct starting *s = arg;
    const struct mcp_launch_params *p = s->params;
    if (code_unpack(CODE_bridge, err) < 0)
        return -1;
    struct hosted *h = mem_zalloc(sizeof *h);
    h->session_id = mcp_session_of(s->name);
    if (start_server(h, k, s, err) < 0)
        return err_wrap(err, "cannot launch the MCP server");
    h->service = keeper_serve(k, &mcp_tool, h, status, hang_up);
    if (p->ends_with > 0)
        keeper_ends_with(h->service, (pid_t)p->ends_with);
    keeper_ends_in(h->service, walls_time_ms(h->walls));
    return 0;
}

const struct rpc_method mcp_keeper_methods[] = {
    {"mcp_send_request", send_request, &mcp_request_params, DOC("Pass a request on to an MCP server"),
     DOC("the server's response, whole"),
     DOC("no such server; it was killed, or has ended; its id is that of an open one; it took too long"),
     NULL, NULL},
    {"mcp_read_requests", read_requests, &mcp_requests_params,
     DOC("Take what a server asks for (sampling, elicitation, roots); from the first call on that waits for "
         "mcp_send_response, before it is refused"),
     DOC("{requests, dropped, remaining}"), DOC("no such server"), NULL, NULL},
    {"mcp_send_response", send_response, &mcp_response_params, DOC("Answer what a server has asked for"),
     DOC("null"), DOC("no such server; it was killed, or has ended"), NULL, NULL},
    {"mcp_send_notification", send_notification, &mcp_notification_params, DOC("Pass a notification on"),
     DOC("null"), DOC("no such server; it was killed, or has ended"), NULL, NULL},
    {"mcp_kill_server", kill_server, &mcp_session_params, DOC("End an MCP server"), DOC("null"),
     DOC("no such server"), NULL, NULL},
    {"mcp_read_notifications", read_notifications, &mcp_read_params,
     DOC("Take what a server has said without being asked"), DOC("{notifications, dropped, remaining}"),
     DOC("no such server"), NULL, NULL},
    {"mcp_follow", follow, &mcp_follow_params,
     DOC("What a server says and asks for as it comes, over a stream each as an event; what it asks for was "
         "answered, with an error"),
     DOC("{notifications, dropped, remaining, cursor, ended}"), DOC("no such server"), NULL, NULL},
    {0},
};
