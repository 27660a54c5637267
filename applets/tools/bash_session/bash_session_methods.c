/* The methods of one session, in its keeper: params in, session calls, results out. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bash_session.h"
#include "bash_session_keeper.h"
#include "bash_session_params.h"
#include "bash_session_tape.h"
#include "bash_session_types.h"
#include "mem.h"
#include "commands/server/moving.h"
#include "commands/server/server.h"
#include "session.h"
#include "session_attach.h"
#include "spawn.h"

/* Absent, 0 and negative mean the default, which is also the most that a session keeps. */
static size_t output_max(long long asked)
{
    return asked <= 0 || asked > SESSION_OUTPUT_MAX ? (size_t)SESSION_OUTPUT_MAX : (size_t)asked;
}

struct hosted {
    struct session session;
    int dirfd; /* of the keeper's sockets */
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
    if (!rpc_unpack(call, &session_interact_params, params, &p))
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
        session_read(&h->session, &r, read_done, pending, &pending->of_session);
    }
    params_release(&session_interact_params, &p);
}

/* What ended a command, or what it met. */
static void put_walls(struct buf *out, const struct run_result *r, const struct confine *walls)
{
    char refused[CONFINE_SAID] = "";
    enum confine_what met = r->has_exit_code ? walls_limit_now(walls, r->exit_code) : CONFINE_PARTS;
    walls_look(walls, r->cwd, r->output, r->output_len, refused);
    if (met != CONFINE_PARTS)
        json_member_string(out, "limit", confine_name(met));
    if (*refused)
        json_member_string(out, "refused", refused);
}

static void put_run_result(struct buf *out, const struct run_result *r, const struct confine *walls)
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
    if (r->error) {
        size_t n = strcspn(r->error, "\n");
        json_key(out, "error");
        buf_addc(out, '{');
        json_member_text(out, "type", r->error, n);
        json_member_string(out, "message", r->error + n + 1);
        buf_addc(out, '}');
    }
    json_member_text(out, "output", r->output, r->output_len);
    json_member_string(out, "cwd", r->cwd);
    json_member_int(out, "duration_ms", r->duration_ms);
    json_member_int(out, "omitted_bytes", (long long)r->omitted_bytes);
    if (r->notice)
        json_member_string(out, "notice", r->notice);
    put_walls(out, r, walls);
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
    put_run_result(&text, result, p->session->options.walls);
    rpc_result(p->call, span_of(&text));
}

static void run(struct rpc_call *call, struct span params, void *ctx)
{
    struct hosted *h = ctx;
    struct run_params p = RUN_DEFAULTS;
    if (!rpc_unpack(call, &session_run_params, params, &p))
        return;
    struct pending *pending = pending_new(call, &h->session);
    struct run_request r = {
        .command = p.command.s,
        .command_len = p.command.n,
        .timeout_ms = p.timeout_s < 0 ? -1 : (int64_t)(p.timeout_s * 1000),
        .ready_ms = p.ready_timeout_s < 0 ? -1 : (int64_t)(p.ready_timeout_s * 1000),
        .max = output_max(p.max_output_bytes),
        .interrupt_abandoned = p.interrupt_abandoned,
    };
    session_run(&h->session, &r, run_done, pending, &pending->of_session);
    params_release(&session_run_params, &p);
}

static void close_session(struct rpc_call *call, struct span params, void *ctx)
{
    struct hosted *h = ctx;
    struct signal_params p = {0};
    if (!rpc_unpack(call, &session_name_params, params, &p))
        return;
    params_release(&session_name_params, &p);
    keeper_end(h->service, call, KEEPER_CLOSED);
}

static void resize(struct rpc_call *call, struct span params, void *ctx)
{
    struct hosted *h = ctx;
    struct resize_params p = {0};
    struct err err;
    if (!rpc_unpack(call, &session_resize_params, params, &p))
        return;
    if (session_resize(&h->session, (int)p.rows, (int)p.cols, &err) < 0)
        rpc_fail(call, &err);
    else
        rpc_null(call);
    params_release(&session_resize_params, &p);
}

static void signal_session(struct rpc_call *call, struct span params, void *ctx)
{
    struct hosted *h = ctx;
    struct signal_params p = {0};
    struct err err;
    if (!rpc_unpack(call, &session_signal_params, params, &p))
        return;
    if (session_signal(&h->session, p.signal.s, &err) < 0)
        rpc_fail(call, &err);
    else
        rpc_null(call);
    params_release(&session_signal_params, &p);
}

static void attach_viewer(struct rpc_call *call, struct span params, void *ctx)
{
    struct hosted *h = ctx;
    struct signal_params p = {0};
    struct buf text BUF_AUTO = BUF_INIT;
    struct err err;
    char name[IPC_NAME_MAX];
    if (!rpc_unpack(call, &session_name_params, params, &p))
        return;
    params_release(&session_name_params, &p);
    if (viewers_invite(&h->session.terminal.viewers, h->dirfd, name, sizeof name, &err) < 0) {
        rpc_fail(call, &err);
        return;
    }
    buf_addc(&text, '{');
    json_member_string(&text, "socket", name);
    buf_addc(&text, '}');
    rpc_result(call, span_of(&text));
}

#ifndef TOOLBOX_GUEST
static void watch(struct rpc_call *call, struct span params, void *ctx)
{
    session_watch(call, params, &((struct hosted *)ctx)->session);
}

static void record(struct rpc_call *call, struct span params, void *ctx)
{
    session_record(call, params, &((struct hosted *)ctx)->session);
}
#define TAPE_METHODS                                                                                         \
    {"bash_session_watch",                                                                                   \
     watch,                                                                                                  \
     &session_watch_params,                                                                                  \
     DOC("Follow what a session shows and what is typed, and take nothing of it from anybody"),              \
     DOC("{cursor, rows, cols, events, omitted_bytes?, ended?}"),                                            \
     DOC("no such session"),                                                                                 \
     NULL,                                                                                                   \
     NULL},                                                                                                  \
        {"bash_session_record",                                                                              \
         record,                                                                                             \
         &session_record_params,                                                                             \
         DOC("Record what a session shows and what is typed"),                                               \
         DOC("{path, failure?}"),                                                                            \
         DOC("no such session; the file can't be made; it is recorded already, or isn't"),                   \
         NULL,                                                                                               \
         NULL},
#else
#define TAPE_METHODS
#endif

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
    json_member_seconds(&text, "idle_s", s.idle_ms);
    json_member_int(&text, "unread_bytes", (long long)s.unread_bytes);
    const struct recording *r = tape_recording(h->session.terminal.tape);
    if (r)
        json_member_string(&text, "recording", recording_path(r));
    walls_put(&text, h->session.options.walls);
    keeper_put_usage(&text, h->service);
    buf_addc(&text, '}');
    rpc_result(call, span_of(&text));
}

static pid_t hang_up(void *ctx)
{
    tape_end(((struct hosted *)ctx)->session.terminal.tape);
    return session_hang_up(&((struct hosted *)ctx)->session);
}

static const char *asked_env(const struct new_session_params *p, const char *name)
{
    return p->env.list ? spawn_env_get(p->env.list, name) : NULL;
}

/* Three lines: the shell's path, that of the recording, and what stands in the answer as it is. */
static void tell(struct keeper *k, const struct hosted *h, const struct confine *walls)
{
    const struct recording *r = tape_recording(h->session.terminal.tape);
    const char *shell = h->session.shell.path, *path = r ? recording_path(r) : "";
    bool fits = strlen(shell) + strlen(path) + 3 < sizeof k->word;
    snprintf(k->word, sizeof k->word, "%s\n%s\n", shell, fits ? path : "");
    walls_tell(k, walls);
}

int session_start_in_keeper(struct keeper *k, void *arg, struct err *err)
{
    const struct starting *o = arg;
    const struct new_session_params *p = o->params;
    if (p->program.list && (p->program.n == 0 || !*p->program.list[0] || p->shell.s))
        return err_set(err, ERR_PARAMS, "Invalid parameters: program: %s",
                       p->shell.s ? "cannot be combined with shell" : "names no program");
    struct confine *walls;
    if (walls_make(k, &p->walls, p->cwd.s, &walls, err) < 0)
        return -1;
    struct hosted *h = mem_zalloc(sizeof *h);
    h->dirfd = k->base.dirfd;
    struct session_options options = {
        .user = o->user,
        .walls = walls,
        .user_name = user_label(o->user ? o->user->uid : geteuid()),
        .cwd = p->cwd.s,
        .shell = p->shell.s,
        .program = p->program.list,
        .term = p->term.s ? p->term.s : asked_env(p, "TERM"),
        .env = spawn_env(k->base.env, p->env.list, o->user),
        .keeps_history = asked_env(p, "HISTFILE"),
        .start_dir = k->base.start_dir,
        .rows = (unsigned short)p->rows,
        .cols = (unsigned short)p->cols,
    };
    if (session_start(&h->session, k->base.loop, &options, err) < 0)
        return -1;
    if (p->record.on && session_begin_record(&h->session, &p->record, k->name, err) < 0)
        return -1;
    h->service = keeper_serve(k, &bash_session_tool, h, status, hang_up);
    if (p->ends_with > 0)
        keeper_ends_with(h->service, (pid_t)p->ends_with);
    keeper_ends_in(h->service, walls_time_ms(walls));
    tell(k, h, walls);
    return 0;
}

/* ---- moving to another build ---- */

static int save(void *ctx, struct handover_out *out, struct err *err)
{
    return session_save(&((const struct hosted *)ctx)->session, out, err);
}

static void nobody_waits(void *ctx)
{
    (void)ctx; /* a call has to come to its own end */
}

static int take_over(struct keeper *k, const struct handover *record, struct err *err)
{
    struct hosted *h = mem_zalloc(sizeof *h);
    long long age;
    int result = handover_int(record, "keeper.age_ms", 0, INT64_MAX / 2, &age, err) < 0
                     ? -1
                     : session_take_over(&h->session, k ? k->base.loop : NULL, record, err);
    if (!k)
        free(h);
    if (result < 0 || !k)
        return result;
    h->dirfd = k->base.dirfd;
    h->service = keeper_serve(k, &bash_session_tool, h, status, hang_up);
    keeper_set_age(h->service, age);
    return 0;
}

const struct moving session_moving = {
    .kind = "session", .number = 5, .save = save, .answer_waiting = nobody_waits, .take = take_over};

const struct rpc_method session_keeper_methods[] = {
    {"bash_session", interact, &session_interact_params, DOC("Type into a session, and read what comes"),
     DOC("a string: the output"), DOC("no such session; its shell has ended"),
     DOC("shell_input, shell_read, shell_interrupt, shell_restart"), NULL},
    {"bash_session_run", run, &session_run_params,
     DOC("Run a command in a session, and tell its exit status"),
     DOC("{state, exit_code, error?, output, cwd, duration_ms, omitted_bytes, notice?}"),
     DOC("no such session; it is busy"), DOC("shell_run, shell_wait"), NULL},
    {"bash_session_close", close_session, &session_name_params, DOC("End a session with all that runs in it"),
     DOC("null"), DOC("no such session"), DOC("shell_close"), NULL},
    {"bash_session_resize", resize, &session_resize_params, DOC("Change the size of the terminal"),
     DOC("null"), DOC("no such session"), NULL, NULL},
    {"bash_session_signal", signal_session, &session_signal_params,
     DOC("Signal the programs in the foreground"), DOC("null"),
     DOC("no such session; no such signal; nothing is in the foreground"), NULL, NULL},
    TAPE_METHODS{"bash_session_attach", attach_viewer, &session_name_params,
                 DOC("Let a terminal take part in a session"),
                 DOC("{socket}: a name in the server's directory, there for one viewer for five seconds"),
                 DOC("no such session"), NULL, NULL},
    {0},
};
