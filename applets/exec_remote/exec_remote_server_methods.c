/* What the server answers of jobs: starting and listing them, and what those that have ended left. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "exec_remote.h"
#include "exec_remote_answer.h"
#include "exec_remote_params.h"
#include "exec_remote_starting.h"
#include "io.h"
#include "job_stored.h"
#include "mem.h"
#include "server/server.h"

#define SWEEP_MS 60000

/* ---- start ---- */

static void starting_free(struct starting *s)
{
    params_release(&job_start_params, &s->params);
    if (s->as_user)
        user_release(&s->user);
    free(s);
}

static void keeper_is_up(void *arg, pid_t pid, const char *word, const struct err *err)
{
    struct starting *s = arg;
    struct buf text BUF_AUTO = BUF_INIT;
    if (s->call && pid < 0) {
        rpc_fail(s->call, err);
    } else if (s->call) {
        buf_addf(&text, "{\"pid\":%s}", word);
        rpc_result(s->call, span_of(&text));
    }
    starting_free(s);
}

static void start_abandoned(void *arg)
{
    ((struct starting *)arg)->call = NULL;
}

/* Now and then, so that what nobody asks for doesn't pile up. */
static void sweep(int dirfd)
{
    static long long next;
    if (now_ms() < next)
        return;
    next = now_ms() + SWEEP_MS;
    record_sweep(dirfd);
}

static void start(struct rpc_call *call, struct span params, void *ctx)
{
    struct starting *s = mem_zalloc(sizeof *s);
    struct err err;
    *s = (struct starting){.call = call, .params = START_DEFAULTS};
    if (params_unpack(&job_start_params, params, &s->params, &err) < 0) {
        rpc_fail(call, &err);
        free(s);
        return;
    }
    if (job_start_check(&s->params, &err) < 0 ||
        user_param_wanted(&s->params.user, &s->user, &s->as_user, &err) < 0) {
        rpc_fail(call, &err);
        starting_free(s);
        return;
    }
    sweep(server_base(ctx)->dirfd);
    rpc_on_abandon(call, start_abandoned, s);
    server_fork_keeper(ctx, "", job_start_in_keeper, s, keeper_is_up, s);
}

/* ---- list ---- */

static void list_ended(void *arg, pid_t pid, const struct record_job *job, const struct record_end *end)
{
    struct buf *text = arg;
    buf_adds(text, text->len > 1 ? ",{" : "{");
    json_member_int(text, "pid", pid);
    json_member_string(text, "state", job_state(end));
    job_put_end(text, end);
    json_member_string(text, "command", job->command);
    job_put_user(text, job);
    json_member_seconds(text, "age_s", now_ms() - job->started_ms);
    job_put_duration(text, job, end);
    buf_addc(text, '}');
}

static void put_listed(struct buf *out, const char *name, struct span status)
{
    if (status.n > 0)
        buf_add(out, status.s, status.n);
    else
        buf_addf(out, "{\"pid\":%s,\"state\":\"stuck\"}", name + strlen(JOB_PREFIX "_"));
}

static void put_all_ended(struct buf *out, int dirfd)
{
    record_each(dirfd, list_ended, out);
}

static void list(struct rpc_call *call, struct span params, void *ctx)
{
    static const struct params_table none = {0};
    static const struct server_listing how = {
        .prefix = JOB_PREFIX, .put = put_listed, .put_more = put_all_ended};
    struct err err;
    if (params_unpack(&none, params, NULL, &err) < 0)
        rpc_fail(call, &err);
    else
        server_list(ctx, call, &how);
}

/* ---- registration ---- */

static int keeper_of(struct span params, char owner[IPC_NAME_MAX], struct err *err)
{
    struct job_params p = JOB_DEFAULTS;
    if (params_unpack(&job_pid_params, params, &p, err) < 0)
        return -1;
    if (p.pid <= 0 || p.pid > INT_MAX)
        return err_set(err, ERR_TOOL, "there is no job %lld; exec_remote_list tells which there are", p.pid);
    snprintf(owner, IPC_NAME_MAX, JOB_PREFIX "_%lld", p.pid);
    return 0;
}

static bool keeps(int dirfd, const char *owner)
{
    return owner ? record_exists(dirfd, (pid_t)strtol(owner + sizeof JOB_PREFIX, NULL, 10))
                 : record_any_untold(dirfd);
}

static const struct rpc_method server_methods[] = {
    {"exec_remote_start", start, &job_start_params, DOC("Start a job: a program in the background"),
     DOC("{pid}"), DOC("the program, the directory or the user can't be used"), DOC("job_start"), NULL},
    {"exec_remote_list", list, NULL,
     DOC("List the jobs that run, and those that ended less than an hour ago"),
     DOC("an array of {pid, state, exit_code, user, age_s, duration_s, command, …}"), NULL, DOC("job_list"),
     NULL},
    {0},
};

static const char *const columns[] = {"pid",       "state",      "exit_code",     "user",
                                      "age_s",     "duration_s", "unread_stdout", "unread_stderr",
                                      "processes", "memory_kb",  "command",       NULL};
static const char *const queries[] = {"exec_remote_list", NULL};

const struct tool exec_remote_tool = {
    .server = server_methods,
    .keeper = job_keeper_methods,
    .keeper_of = keeper_of,
    .without_keeper = job_answer_from_file,
    .keeps = keeps,
    .moving = MOVES(&job_moving),
    .list = {"exec_remote_list", "jobs", columns},
    .queries = queries,
};
