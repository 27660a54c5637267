/* Shared by the files of a job alone. */
#ifndef APPLETS_EXEC_REMOTE_JOB_INTERNAL_H
#define APPLETS_EXEC_REMOTE_JOB_INTERNAL_H

#include "job.h"

/* ---- job_wait.c ---- */
void job_waiters_add(struct job_waiter **list, struct job_waiter *w);
/* Takes all out of the list and calls them. */
void job_waiters_wake(struct job_waiter **list);

/* Nothing can come behind what is there. */
static inline bool job_stream_is_final(const struct job_stream *s)
{
    return s->discard || s->fd < 0;
}

/* ---- job_output.c ---- */
void job_open_stream(struct job *j, int i, int fd);
/* Reads what is in the pipes by now, and nothing after that. */
void job_finish_streams(struct job *j);
/* For what they say of a wall that they met. */
void job_look_at_rest(struct job *j);
void job_close_streams(struct job *j);

/* Goes on reading, after job_take_over. */
void job_resume_streams(struct job *j);

/* ---- job.c ---- */
/* Everything that a loop has to do with a job that was started elsewhere. */
void job_watch_again(struct job *j, long long timeout_ms);

/* ---- job_terminal.c ---- */
/* Opens a terminal of the job's, as three pairs of ends for reading and writing. */
int job_open_terminal(const struct job_options *o, int pipes[3][2], struct err *err);
/* The end of input, as it is typed. */
void job_type_end(struct job *j);

/* ---- job_stdin.c ---- */
/* Takes the text as bytes; -1 when latin-1 is asked for and a character has no byte. */
int job_stdin_add(struct job *j, const char *data, size_t n);
void job_stdin_flush(struct job *j);
void job_stdin_drop(struct job *j);

#endif
