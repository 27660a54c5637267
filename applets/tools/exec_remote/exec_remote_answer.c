#include "exec_remote_answer.h"

#include <stdlib.h>
#include <string.h>

#include "exec_remote_params.h"
#include "ipc.h"
#include "job_stored.h"
#include "job_text.h"
#include "mem.h"
#include "user.h"

const char *job_state(const struct record_end *end)
{
    return !end->ended ? "running" : end->killed ? "killed" : "completed";
}

void job_put_end(struct buf *out, const struct record_end *end)
{
    json_key(out, "exit_code");
    if (end->ended)
        json_put_int(out, end->exit_code);
    else
        buf_adds(out, "null");
    if (end->ended && end->timed_out)
        json_member_bool(out, "timed_out", true);
    if (end->ended && end->oom_killed)
        json_member_bool(out, "oom_killed", true);
    if (end->ended && end->limit > 0 && end->limit <= CONFINE_PARTS)
        json_member_string(out, "limit", confine_name((enum confine_what)(end->limit - 1)));
    if (*end->refused)
        json_member_string(out, "refused", end->refused);
}

void job_put_user(struct buf *out, const struct record_job *job)
{
    char *user MEM_AUTO = user_label(job->uid);
    json_member_string(out, "user", user);
}

void job_put_duration(struct buf *out, const struct record_job *job, const struct record_end *end)
{
    if (end->ended_ms > 0)
        json_member_seconds(out, "duration_s", end->ended_ms - job->started_ms);
}

void job_answer(struct rpc_call *call, struct record *r, enum job_form form)
{
    struct buf text BUF_AUTO = BUF_INIT;
    record_count(r);
    buf_reserve(&text, r->text[0].len + r->text[1].len + 256);
    buf_addc(&text, '{');
    if (form == JOB_EVENT) {
        json_member_int(&text, "cursor", r->seq);
        json_member_bool(&text, "ended", r->end.ended);
    }
    if (form != JOB_OUTPUT) {
        json_member_string(&text, "state", job_state(&r->end));
        job_put_end(&text, &r->end);
    }
    json_member_int(&text, "seq", r->seq);
    json_member_text(&text, "stdout", buf_str(&r->text[0]), r->text[0].len);
    json_member_text(&text, "stderr", buf_str(&r->text[1]), r->text[1].len);
    if (r->end.stdin_discarded > 0)
        json_member_int(&text, "stdin_discarded", (long long)r->end.stdin_discarded);
    buf_addc(&text, '}');
    rpc_result_take(call, &text, 0);
}

int job_unknown(long long pid, struct err *err)
{
    /* inspect_ai looks for the first words, to tell a job that is gone from one that can't be asked */
    return err_set(err, ERR_TOOL,
                   "No job found with pid %lld: there is no job %lld; exec_remote_list tells which there are",
                   pid, pid);
}

/* ---- of a job that has ended ---- */

static const struct {
    const char *method;
    const struct params_table *params;
    enum job_form form;
} answers[] = {
    {"exec_remote_poll", &job_ack_params, JOB_STATE},
    {"exec_remote_wait", &job_wait_params, JOB_STATE},
    {"exec_remote_follow", &job_follow_params, JOB_EVENT},
    {"exec_remote_kill", &job_ack_params, JOB_OUTPUT},
    {"exec_remote_write_stdin", &job_write_params, JOB_OUTPUT},
    {"exec_remote_close_stdin", &job_ack_params, JOB_OUTPUT},
};

/* To signal, to resize or to hold it. */
static void too_late(struct rpc_call *call, const char *method, struct span params)
{
    const struct params_table *table = strcmp(method, "exec_remote_hold") == 0     ? &job_hold_params
                                       : strcmp(method, "exec_remote_resize") == 0 ? &job_resize_params
                                                                                   : &job_signal_params;
    struct job_params p = JOB_DEFAULTS;
    struct err err;
    if (params_unpack(table, params, &p, &err) == 0)
        err_set(&err, ERR_TOOL, "job %lld has ended", p.pid);
    rpc_fail(call, &err);
    params_release(table, &p);
}

/* What was closed takes nothing any more; the answer to a write would say that it was taken. */
static bool is_refused(const char *method, const struct job_params *p, int dirfd, struct rpc_call *call)
{
    struct err err;
    if (strcmp(method, "exec_remote_close_stdin") == 0)
        record_close_stdin(dirfd, (pid_t)p->pid);
    if (strcmp(method, "exec_remote_write_stdin") != 0 ||
        record_discard(dirfd, (pid_t)p->pid, p->data.s, p->data.n))
        return false;
    err_set(&err, ERR_TOOL, JOB_STDIN_CLOSED, (long)p->pid);
    rpc_fail(call, &err);
    return true;
}

bool job_answer_from_file(struct rpc_call *call, const char *method, struct span params, const char *owner,
                          int dirfd)
{
    struct record r = RECORD_INIT;
    struct job_params p = JOB_DEFAULTS;
    struct err err;
    pid_t pid = (pid_t)strtol(owner + sizeof JOB_PREFIX, NULL, 10);
    bool there = true;
    size_t i = 0;
    if (!record_exists(dirfd, pid)) {
        if (ipc_exists(dirfd, owner))
            return false;
        job_unknown(pid, &err);
        rpc_fail(call, &err);
        return true;
    }
    while (i < sizeof answers / sizeof *answers && strcmp(answers[i].method, method) != 0)
        i++;
    if (i == sizeof answers / sizeof *answers) {
        too_late(call, method, params);
    } else if (params_unpack(answers[i].params, params, &p, &err) < 0) {
        rpc_fail(call, &err);
    } else {
        bool refused = is_refused(method, &p, dirfd, call);
        there = refused || record_answer_stored(&r, dirfd, pid, p.ack_seq);
        if (there && !refused)
            job_answer(call, &r, answers[i].form);
        params_release(answers[i].params, &p);
    }
    record_release(&r);
    return there;
}
