/* The methods of one job, in its keeper: params in, job calls, results out. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exec_remote.h"
#include "exec_remote_answer.h"
#include "exec_remote_params.h"
#include "exec_remote_keeper.h"
#include "exec_remote_pending.h"
#include "io.h"
#include "job.h"
#include "job_shelf.h"
#include "job_stored.h"
#include "mem.h"
#include "proc.h"
#include "commands/server/moving.h"
#include "commands/server/other_builds.h"
#include "commands/server/server.h"
#include "utf8.h"
#include "title.h"

#define COMMAND_SHOWN 200 /* bytes of a command in the list */
#define PID_TRIES 1000    /* pids that other jobs still have, before there is an error */
#define PID_GOOD_TRIES 50 /* until then one whose end was told lately is passed over as well */

struct hosted {
    struct job job;
    struct keeper *keeper;
    struct keeper_service *service;
    char *command;
    struct rpc_call *holder; /* whose end is the job's; NULL: nobody's */
    bool owned;              /* or that of a process */
    bool stored;
    struct confine *walls; /* NULL: none */
};

/* Nothing more will happen: what is left goes to a file. Where that can't be written the keeper stays. */
static void on_gone(void *arg)
{
    struct hosted *h = arg;
    struct job *j = &h->job;
    const struct fifo *raw[2] = {&j->out[0].raw, &j->out[1].raw};
    if (h->stored)
        return;
    j->record.end.ended = true;
    j->record.end.stdin_closed = !j->in.ever_open || j->in.closing;
    h->stored = record_store(&j->record, raw, j->latin1, h->keeper->base.dirfd, NULL) == 0;
    if (h->stored && h->holder)
        rpc_null(h->holder);
    if (h->stored)
        keeper_leave(h->service);
}

/* ---- methods ---- */

/* Unpacks, or answers: with what is wrong, or on the way out from the file, as the server does from now on.
 */
static bool unpack(struct hosted *h, struct rpc_call *call, const char *method,
                   const struct params_table *table, struct span params, struct job_params *p)
{
    *p = (struct job_params)JOB_DEFAULTS;
    if (h->stored && job_answer_from_file(call, method, params, h->keeper->name, h->keeper->base.dirfd))
        return false;
    return rpc_unpack(call, table, params, p);
}

static void poll_job(struct rpc_call *call, struct span params, void *ctx)
{
    struct hosted *h = ctx;
    struct job_params p;
    if (!unpack(h, call, "exec_remote_poll", &job_ack_params, params, &p))
        return;
    record_acknowledge(&h->job.record, p.ack_seq);
    job_give(&h->job, call, JOB_STATE);
    job_notify(&h->job);
}

static void wait_for(struct hosted *h, struct rpc_call *call, struct span params, enum job_form form)
{
    struct job_params p;
    bool events = form == JOB_EVENT;
    if (!unpack(h, call, events ? "exec_remote_follow" : "exec_remote_wait",
                events ? &job_follow_params : &job_wait_params, params, &p))
        return;
    record_acknowledge(&h->job.record, p.ack_seq);
    job_give_news(&h->job, call, p.timeout_s, form);
}

static void wait_job(struct rpc_call *call, struct span params, void *ctx)
{
    wait_for(ctx, call, params, JOB_STATE);
}

static void follow_job(struct rpc_call *call, struct span params, void *ctx)
{
    wait_for(ctx, call, params, JOB_EVENT);
}

static void kill_job(struct rpc_call *call, struct span params, void *ctx)
{
    struct hosted *h = ctx;
    struct job_params p;
    if (!unpack(h, call, "exec_remote_kill", &job_ack_params, params, &p))
        return;
    record_acknowledge(&h->job.record, p.ack_seq);
    if (job_is_gone(&h->job)) { /* the keeper may be on its way out: nothing is put off any more */
        job_give(&h->job, call, JOB_OUTPUT);
        job_notify(&h->job);
        return;
    }
    job_give_end(&h->job, call);
}

static void write_stdin(struct rpc_call *call, struct span params, void *ctx)
{
    struct hosted *h = ctx;
    struct job_params p;
    struct err err;
    if (!unpack(h, call, "exec_remote_write_stdin", &job_write_params, params, &p))
        return;
    if (job_write(&h->job, p.data.s, p.data.n, &err) < 0) {
        rpc_fail(call, &err);
    } else {
        record_acknowledge(&h->job.record, p.ack_seq);
        job_give(&h->job, call, JOB_OUTPUT);
    }
    params_release(&job_write_params, &p);
    job_notify(&h->job);
}

static void close_stdin(struct rpc_call *call, struct span params, void *ctx)
{
    struct hosted *h = ctx;
    struct job_params p;
    if (!unpack(h, call, "exec_remote_close_stdin", &job_ack_params, params, &p))
        return;
    job_close_stdin(&h->job);
    record_acknowledge(&h->job.record, p.ack_seq);
    job_give(&h->job, call, JOB_OUTPUT);
    job_notify(&h->job);
}

static void signal_job(struct rpc_call *call, struct span params, void *ctx)
{
    struct hosted *h = ctx;
    struct job_params p;
    struct err err;
    if (!unpack(h, call, "exec_remote_signal", &job_signal_params, params, &p))
        return;
    if (job_signal(&h->job, p.signal.s, &err) < 0)
        rpc_fail(call, &err);
    else
        rpc_null(call);
    params_release(&job_signal_params, &p);
}

static void resize_job(struct rpc_call *call, struct span params, void *ctx)
{
    struct hosted *h = ctx;
    struct job_params p;
    struct err err;
    if (!unpack(h, call, "exec_remote_resize", &job_resize_params, params, &p))
        return;
    if (job_resize(&h->job, (unsigned short)p.rows, (unsigned short)p.cols, &err) < 0)
        rpc_fail(call, &err);
    else
        rpc_null(call);
}

static void holder_gone(void *arg)
{
    struct hosted *h = arg;
    h->holder = NULL;
    job_abandon(&h->job);
}

static void hold_job(struct rpc_call *call, struct span params, void *ctx)
{
    struct hosted *h = ctx;
    struct job_params p;
    struct err err;
    if (!unpack(h, call, "exec_remote_hold", &job_hold_params, params, &p))
        return;
    if (h->holder) {
        err_set(&err, ERR_TOOL, "job %lld is held by another client", p.pid);
        rpc_fail(call, &err);
        return;
    }
    h->holder = call;
    rpc_on_abandon(call, holder_gone, h);
}

static size_t unread(const struct job *j, int i)
{
    return j->out[i].raw.len + j->record.text[i].len;
}

static void status(struct rpc_call *call, struct span params, void *ctx)
{
    const struct hosted *h = ctx;
    const struct job *j = &h->job;
    struct buf text BUF_AUTO = BUF_INIT;
    (void)params;
    buf_addc(&text, '{');
    json_member_string(&text, "state",
                       !j->reaped             ? "running"
                       : j->record.end.killed ? "killed"
                                              : "completed");
    json_key(&text, "exit_code");
    if (j->reaped)
        json_put_int(&text, j->record.end.exit_code);
    else
        buf_adds(&text, "null");
    json_member_string(&text, "command", h->command);
    job_put_user(&text, &j->record.job);
    if (j->terminal)
        json_member_bool(&text, "pty", true);
    walls_put(&text, h->walls);
    json_member_int(&text, "unread_stdout", (long long)unread(j, 0));
    json_member_int(&text, "unread_stderr", (long long)unread(j, 1));
    keeper_put_usage(&text, h->service);
    job_put_duration(&text, &j->record.job, &j->record.end);
    buf_addc(&text, '}');
    rpc_result(call, span_of(&text));
}

static pid_t hang_up(void *ctx)
{
    struct hosted *h = ctx;
    h->job.owner.gone = NULL; /* nobody will ask how it ended */
    return job_hang_up(&h->job);
}

/* ---- start ---- */

/* What a child's pid has to be: that of no job that still has something to tell. From then on it is ours: our
 * socket has its name before the program runs. */
struct claim {
    int dirfd;
    const char *hidden; /* the socket's name until then */
};

static void job_name(char name[IPC_NAME_MAX], pid_t pid)
{
    snprintf(name, IPC_NAME_MAX, JOB_PREFIX "_%ld", (long)pid);
}

static bool is_taken(int dirfd, const char *name)
{
    if (!ipc_exists(dirfd, name))
        return other_builds_used(dirfd, name);
    int fd FD_AUTO = ipc_connect(dirfd, name, 0);
    return fd >= 0 || (errno != ECONNREFUSED && errno != ENOENT);
}

static int claim_pid(void *arg, pid_t pid, unsigned refused, struct err *err)
{
    const struct claim *c = arg;
    char name[IPC_NAME_MAX];
    job_name(name, pid);
    if (refused > PID_TRIES)
        return err_set(err, ERR_TOOL,
                       "all process ids are those of jobs that have not been polled to their end");
    if (is_taken(c->dirfd, name) || !record_gives_way(c->dirfd, pid, refused > PID_GOOD_TRIES))
        return 0;
    return ipc_show(c->dirfd, c->hidden, name, err) < 0 ? -1 : 1;
}

/* The first bytes of a command, or of argv's words. */
static char *shown(const struct start_params *p)
{
    struct buf text BUF_AUTO = BUF_INIT;
    size_t n;
    if (p->command.s)
        buf_add(&text, p->command.s, p->command.n < COMMAND_SHOWN ? p->command.n : COMMAND_SHOWN);
    for (size_t i = 0; i < p->argv.n && text.len < COMMAND_SHOWN; i++)
        buf_addf(&text, "%s%.*s", i > 0 ? " " : "", COMMAND_SHOWN, p->argv.list[i]);
    buf_addc(&text, '\0');
    return buf_take(&text, &n);
}

/* A program on a terminal wants to know of which kind that is. */
static char **job_env(char *const *base, const struct start_params *p, const struct user *user)
{
    char *kind[] = {(char *)"TERM=xterm", NULL};
    char **env = spawn_env(base, p->env.list, user);
    if (!p->pty.on || (p->env.list && spawn_env_get(p->env.list, "TERM")))
        return env;
    char **with_kind = spawn_env(env, kind, NULL);
    spawn_env_free(env);
    return with_kind;
}

/* The sooner of both. */
static int64_t time_of(const struct start_params *p, const struct confine *walls)
{
    long long wall = walls && walls->wanted[CONFINE_WALL_SECONDS] ? walls->limits[CONFINE_WALL_SECONDS] : -1;
    double s = p->timeout_s < 0 || (wall >= 0 && (double)wall < p->timeout_s) ? (double)wall : p->timeout_s;
    return s < 0 ? -1 : (int64_t)(s * 1000);
}

static int start_job(struct hosted *h, const struct starting *s, struct claim *claim, struct err *err)
{
    struct keeper *k = h->keeper;
    const struct start_params *p = s->params;
    char *by_shell[] = {(char *)"/bin/sh", (char *)"-c", p->command.s, NULL};
    pid_t accepted = 0;
    if (walls_make(k, &p->walls, p->cwd.s, &h->walls, err) < 0)
        return -1;
    char **env = job_env(k->base.env, p, s->user);
    struct job_options options = {
        .argv = p->command.s ? by_shell : p->argv.list,
        .env = env,
        .cwd = p->cwd.s,
        .start_dir = k->base.start_dir,
        .user = s->user,
        .walls = h->walls,
        .umask = p->umask,
        .input = p->input.s,
        .input_len = p->input.n,
        .stdin_open = p->stdin_open,
        .latin1 = job_start_is_latin1(p),
        .rows = (unsigned short)(p->pty.on ? p->pty.rows : 0),
        .cols = (unsigned short)p->pty.cols,
        .timeout_ms = time_of(p, h->walls),
        .accept = {claim_pid, claim, &accepted},
    };
    int result = job_start(&h->job, k->base.loop, &options, err);
    spawn_env_free(env);
    if (accepted > 0)
        job_name(k->name, accepted);
    return result;
}

/* The socket has no name before the child has its pid. */
static int listen_and_start(struct hosted *h, const struct starting *s, struct err *err)
{
    struct keeper *k = h->keeper;
    char own[IPC_NAME_MAX];
    struct claim claim = {k->base.dirfd, k->hidden};
    if (k->listen_fd >= 0)
        return start_job(h, s, &claim, err);
    snprintf(own, sizeof own, JOB_PREFIX "-%ld", (long)getpid());
    claim.hidden = own;
    k->listen_fd = ipc_listen_hidden(claim.dirfd, own, err);
    if (k->listen_fd < 0)
        return -1;
    int result = start_job(h, s, &claim, err);
    if (!*k->name)
        ipc_unlink_hidden(claim.dirfd, own);
    return result;
}

/* So much of it as is told when the job has ended. */
static void note_command(struct hosted *h)
{
    snprintf(h->job.record.job.command, RECORD_COMMAND_MAX, "%.*s",
             (int)utf8_valid_prefix(h->command, strnlen(h->command, RECORD_COMMAND_MAX - 1)), h->command);
}

static void owner_gone(void *arg)
{
    job_abandon(&((struct hosted *)arg)->job);
}

int job_start_in_keeper(struct keeper *k, void *arg, struct err *err)
{
    const struct starting *s = arg;
    struct start_params *p = s->params;
    struct hosted *h = mem_zalloc(sizeof *h);
    h->keeper = k;
    long long started_ms = now_ms();
    if (listen_and_start(h, s, err) < 0)
        return -1;
    h->job.owner.gone = on_gone;
    h->job.owner.arg = h;
    h->command = shown(p);
    h->job.record.job.started_ms = started_ms;
    h->job.record.job.uid = s->user ? s->user->uid : geteuid();
    note_command(h);
    h->owned = p->ends_with > 0;
    if (h->owned)
        proc_watch(k->base.loop, (pid_t)p->ends_with, owner_gone, h);
    params_release(&job_start_params, p); /* the input may be long */
    shelf_remove(k->base.dirfd, h->job.pid);
    char *title MEM_AUTO = mem_printf("toolbox %s", k->name);
    title_set(title);
    h->service = keeper_serve(k, &exec_remote_tool, h, status, hang_up);
    snprintf(k->word, sizeof k->word, "%ld", (long)h->job.pid);
    walls_tell(k, h->walls);
    return 0;
}

/* ---- moving to another build ---- */

static int save(void *ctx, struct handover_out *out, struct err *err)
{
    const struct hosted *h = ctx;
    if (h->stored)
        return err_set(err, ERR_TOOL, "it has ended");
    if (h->job.terminal)
        return err_set(err, ERR_TOOL, "it has a terminal");
    if (h->walls)
        return err_set(err, ERR_TOOL, "it is confined");
    if (h->holder || h->owned)
        return err_set(err, ERR_TOOL, "a client holds it (exec_remote run), which would lose it");
    handover_put(out, "hosted.command", h->command, strlen(h->command));
    return job_save(&h->job, out, err);
}

static void answer_waiting(void *ctx)
{
    struct hosted *h = ctx;
    job_wake(&h->job);
}

static int take_over(struct keeper *k, const struct handover *record, struct err *err)
{
    struct hosted *h = mem_zalloc(sizeof *h);
    const char *command;
    size_t n;
    long long age;
    int result = -1;
    h->keeper = k;
    if (handover_get(record, "hosted.command", &command, &n, err) == 0 &&
        handover_int(record, "keeper.age_ms", 0, INT64_MAX / 2, &age, err) == 0)
        result = job_take_over(&h->job, k ? k->base.loop : NULL, record, err);
    if (result < 0 || !k) {
        free(h);
        return result;
    }
    h->job.owner.gone = on_gone;
    h->job.owner.arg = h;
    h->command = mem_dup(command, n);
    note_command(h);
    h->service = keeper_serve(k, &exec_remote_tool, h, status, hang_up);
    keeper_set_age(h->service, age);
    return 0;
}

const struct moving job_moving = {
    .kind = "job", .number = 1, .save = save, .answer_waiting = answer_waiting, .take = take_over};

const struct rpc_method job_keeper_methods[] = {
    {"exec_remote_poll", poll_job, &job_ack_params, DOC("Take what a job has printed, and its state"),
     DOC("{state, exit_code, seq, stdout, stderr}"), DOC("no such job"), DOC("job_wait"), NULL},
    {"exec_remote_wait", wait_job, &job_wait_params, DOC("The same, once there is something to say"),
     DOC("{state, exit_code, seq, stdout, stderr}"), DOC("no such job"), DOC("job_wait"), NULL},
    {"exec_remote_follow", follow_job, &job_follow_params,
     DOC("The same as it happens, over a stream each as an event"),
     DOC("{cursor, ended, state, exit_code, seq, stdout, stderr}"), DOC("no such job"), NULL, NULL},
    {"exec_remote_kill", kill_job, &job_ack_params,
     DOC("End a job and all its descendants: TERM, after 5 seconds KILL"), DOC("{seq, stdout, stderr}"),
     DOC("no such job"), DOC("job_kill"), NULL},
    {"exec_remote_write_stdin", write_stdin, &job_write_params, DOC("Write to its stdin"),
     DOC("{seq, stdout, stderr}, and stdin_discarded: bytes in all that nobody will read"),
     DOC("no such job; its stdin is closed, or full"), DOC("job_write"), NULL},
    {"exec_remote_close_stdin", close_stdin, &job_ack_params, DOC("Close its stdin"),
     DOC("{seq, stdout, stderr}"), DOC("no such job"), DOC("job_write"), NULL},
    {"exec_remote_resize", resize_job, &job_resize_params,
     DOC("Change the size of the terminal of a job that has one"), DOC("null"),
     DOC("no such job; it has no terminal, or has ended"), NULL, NULL},
    {"exec_remote_signal", signal_job, &job_signal_params, DOC("Signal its process group"), DOC("null"),
     DOC("no such job; no such signal; it has ended"), NULL, NULL},
    {"exec_remote_hold", hold_job, &job_hold_params,
     DOC("Wait for the end of a job that ends with the caller"), DOC("null"),
     DOC("no such job; it has ended, or is held"), NULL, NULL},
    {0},
};
