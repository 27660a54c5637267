/* What the server answers of jobs: starting and listing them, and what those that have ended left. */
#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exec_remote.h"
#include "exec_remote_answer.h"
#include "exec_remote_keeper.h"
#include "exec_remote_params.h"
#include "io.h"
#include "job_shelf.h"
#include "job_stored.h"
#include "mem.h"
#include "commands/server/server.h"

#define SWEEP_MS 60000
#define JUST_MS 10000 /* far longer than keepers are asked for */

/* ---- start ---- */

/* Now and then, so that what nobody asks for doesn't pile up. */
static void sweep(int dirfd)
{
    static long long next;
    if (now_ms() < next)
        return;
    next = now_ms() + SWEEP_MS;
    record_sweep(dirfd);
}

static void put_started(struct buf *out, const char *name, const char *word)
{
    (void)name;
    buf_addf(out, "{\"pid\":%s}", word);
}

static void start(struct rpc_call *call, struct span params, void *ctx)
{
    static const struct start_params defaults = START_DEFAULTS;
    static const struct starting_kind kind = {.params = &job_start_params,
                                              .size = sizeof(struct start_params),
                                              .user = offsetof(struct start_params, user),
                                              .surroundings = offsetof(struct start_params, surroundings),
                                              .defaults = &defaults,
                                              .check = job_start_check,
                                              .start = job_start_in_keeper,
                                              .put_answer = put_started};
    sweep(server_base(ctx)->dirfd);
    server_start_keeper(ctx, call, params, &kind);
}

/* ---- list ---- */

/* What is answered, and the part of it that keepers have said. */
struct answer {
    struct buf *text;
    size_t said;
};

/* Its keeper has answered, and ended since. */
static bool is_said(const struct answer *a, pid_t pid, const struct record_end *end)
{
    char key[32];
    int n = snprintf(key, sizeof key, "{\"pid\":%ld,", (long)pid);
    return now_ms() - end->ended_ms < JUST_MS && memmem(a->text->data, a->said, key, (size_t)n);
}

static void list_ended(void *arg, pid_t pid, const struct record_job *job, const struct record_end *end)
{
    struct answer *a = arg;
    struct buf *text = a->text;
    if (is_said(a, pid, end))
        return;
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

static void put_key(struct buf *out, const char *name)
{
    json_key(out, "pid");
    buf_adds(out, name + sizeof JOB_PREFIX);
}

static void put_all_ended(struct buf *out, int dirfd)
{
    struct answer a = {out, out->len};
    record_each(dirfd, list_ended, &a);
}

static bool keeps(int dirfd, const char *owner)
{
    return owner ? record_exists(dirfd, (pid_t)strtol(owner + sizeof JOB_PREFIX, NULL, 10))
                 : record_any_untold(dirfd);
}

static void list(struct rpc_call *call, struct span params, void *ctx)
{
    static const struct server_listing how = {
        .prefix = JOB_PREFIX, .put_key = put_key, .put_more = put_all_ended, .has_more = keeps};
    server_list(ctx, call, params, &how);
}

/* ---- registration ---- */

static int keeper_of(struct span params, char owner[IPC_NAME_MAX], struct err *err)
{
    struct job_params p = JOB_DEFAULTS;
    if (params_unpack(&job_pid_params, params, &p, err) < 0)
        return -1;
    if (p.pid <= 0 || p.pid > INT_MAX)
        return job_unknown(p.pid, err);
    snprintf(owner, IPC_NAME_MAX, JOB_PREFIX "_%lld", p.pid);
    return 0;
}

static const struct rpc_method server_methods[] = {
    {"exec_remote_start", start, &job_start_params, DOC("Start a job: a program in the background"),
     DOC("{pid, enforced?}"),
     DOC("the program, the directory or the user can't be used; it can't be confined so"), DOC("job_start"),
     NULL},
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
    .keeps_in = shelf_is_in,
    .moving = MOVES(&job_moving),
    .list = {"exec_remote_list", "jobs", columns},
    .queries = queries,
};
