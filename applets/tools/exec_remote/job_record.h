/* What a job has to tell its clients: output as text until it is acknowledged, the numbers of the answers,
 * and how it ended. It lives in the job's keeper; of a job that has ended it goes to a file (job_stored.h).
 *
 * `seq` counts answers. A mark says up to where the text had been handed out with an answer; an answer that
 * brought nothing new has none. So an acknowledgement frees the text up to the last mark at or before it. */
#ifndef APPLETS_EXEC_REMOTE_JOB_RECORD_H
#define APPLETS_EXEC_REMOTE_JOB_RECORD_H

#include <stdbool.h>
#include <sys/types.h>

#include "buf.h"
#include "confine.h"

#define RECORD_MARKS_MAX 65536

struct record_mark {
    long long seq;
    unsigned long long end[2];
};

#define RECORD_COMMAND_MAX 68

/* What is told of it when it has ended. */
struct record_job {
    long long started_ms; /* now_ms */
    uid_t uid;
    char command[RECORD_COMMAND_MAX]; /* its begin, in UTF-8, with a NUL behind */
};

/* How it ended. */
struct record_end {
    long long ended_ms; /* now_ms; 0: its main process runs */
    int exit_code;      /* -N: signal N */
    bool ended;         /* and there is no output but that in the record */
    bool killed;
    bool timed_out;
    bool oom_killed;
    unsigned char limit;                /* which has ended it: enum confine_what, and one; 0: none has */
    bool stdin_closed;                  /* by a client, who may write no more; or it never was open */
    char refused[CONFINE_SAID];         /* by its walls, in words; "": nothing */
    unsigned long long stdin_discarded; /* bytes that nobody will read any more */
};

struct record {
    pid_t pid;
    long long seq;
    struct record_job job;
    struct record_end end;
    bool told; /* the end was in an answer */
    struct buf text[2];
    unsigned long long base[2]; /* where the text begins, counted from the first byte */
    struct record_mark *marks;
    size_t n_marks;
};
#define RECORD_INIT                                                                                          \
    {                                                                                                        \
        .text = { BUF_INIT, BUF_INIT }                                                                       \
    }

void record_release(struct record *r);

/* Frees what that answer, and those before it, brought. Not what no answer has brought yet, whatever the
 * number; nothing when it is 0 or less. */
void record_acknowledge(struct record *r, long long seq);

/* Marks all text as that of the answer `seq`, which is not yet given; called again for it does nothing. */
void record_mark(struct record *r, long long seq);

/* Counts an answer that hands out all the text. */
void record_count(struct record *r);

#endif
