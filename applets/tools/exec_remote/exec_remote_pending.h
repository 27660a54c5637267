/* Answers of a job to calls, some of which wait for it; in its keeper. */
#ifndef APPLETS_EXEC_REMOTE_EXEC_REMOTE_PENDING_H
#define APPLETS_EXEC_REMOTE_EXEC_REMOTE_PENDING_H

#include "exec_remote_answer.h"
#include "job.h"
#include "rpc.h"

/* At once, with what there is. */
void job_give(struct job *j, struct rpc_call *call, enum job_form form);
/* When there is news, or after so many seconds (< 0: no limit). */
void job_give_news(struct job *j, struct rpc_call *call, double timeout_s, enum job_form form);
/* Ends it, and answers when nothing of it lives any more. */
void job_give_end(struct job *j, struct rpc_call *call);

#endif
