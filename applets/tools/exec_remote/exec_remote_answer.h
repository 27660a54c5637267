/* What a job's record says, as the result of a method: in the keeper and, of ended ones, in the server. */
#ifndef APPLETS_EXEC_REMOTE_EXEC_REMOTE_ANSWER_H
#define APPLETS_EXEC_REMOTE_EXEC_REMOTE_ANSWER_H

#include "job_record.h"
#include "rpc.h"

/* Counts an answer and gives it: output alone, with the job's state (poll, wait), or as an event of who
 * follows it as well. */
enum job_form { JOB_OUTPUT, JOB_STATE, JOB_EVENT };
void job_answer(struct rpc_call *call, struct record *r, enum job_form form);

/* -1, and that there is no such job. */
int job_unknown(long long pid, struct err *err);

const char *job_state(const struct record_end *end);
/* Members exit_code, timed_out, oom_killed: the first as null while it runs, the others only when true. */
void job_put_end(struct buf *out, const struct record_end *end);

/* Members user; and, where it has ended, duration_s. */
void job_put_user(struct buf *out, const struct record_job *job);
void job_put_duration(struct buf *out, const struct record_job *job, const struct record_end *end);

/* tool.h: answers for a job that has ended. */
bool job_answer_from_file(struct rpc_call *call, const char *method, struct span params, const char *owner,
                          int dirfd);

#endif
