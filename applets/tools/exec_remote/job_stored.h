/* What a job that has ended leaves on the shelf (job_shelf.h), from which whoever is asked answers, in steps
 * as a living job does. It goes an hour after somebody has last asked. */
#ifndef APPLETS_EXEC_REMOTE_JOB_STORED_H
#define APPLETS_EXEC_REMOTE_JOB_STORED_H

#include "err.h"
#include "fifo.h"
#include "job_record.h"

#define JOB_PREFIX "Job" /* a job's keeper listens as Job_PID */

/* Writes it, all or nothing: the record, and behind it what is in no answer yet. `latin1`: each byte is a
 * character. */
int record_store(const struct record *r, const struct fifo *const raw[2], bool latin1, int dirfd,
                 struct err *err);

bool record_exists(int dirfd, pid_t pid);
/* One whose end has not been told yet. */
bool record_any_untold(int dirfd);

/* Acknowledges, and makes *r (RECORD_INIT) what the next answer is to say; it counts as given. False when
 * nothing is stored of that pid. */
bool record_answer_stored(struct record *r, int dirfd, pid_t pid, long long ack_seq);

/* That its stdin is closed, and that so much text was written to it, which nobody reads. False, and nothing
 * is counted, when it was closed before. */
void record_close_stdin(int dirfd, pid_t pid);
bool record_discard(int dirfd, pid_t pid, const char *text, size_t n);

/* True when a new job may have the pid: nothing is stored of it, or (`told_will_do`) its end was told. */
bool record_gives_way(int dirfd, pid_t pid, bool told_will_do);
/* Removes those that nobody has asked for an hour, and hidden sockets likewise. */
void record_sweep(int dirfd);
/* Calls fn for every stored one. */
typedef void (*record_visitor)(void *arg, pid_t pid, const struct record_job *job,
                               const struct record_end *end);
void record_each(int dirfd, record_visitor fn, void *arg);

#endif
