/* One job, in its keeper: the program, its pipes, its end. No JSON, no socket.
 *
 * Output is read into memory up to a limit (and a share of what memory there is), then the writer blocks. It
 * becomes text only when an answer takes it. The job is over when its main process has been reaped and what
 * was readable then has been read; what descendants still write is read and thrown away until there are none.
 * All callbacks run from the loop. */
#ifndef APPLETS_EXEC_REMOTE_JOB_H
#define APPLETS_EXEC_REMOTE_JOB_H

#include <stdbool.h>
#include <sys/types.h>

#include "err.h"
#include "fifo.h"
#include "handover.h"
#include "job_record.h"
#include "json.h"
#include "loop.h"
#include "memory_share.h"
#include "proc.h"
#include "spawn.h"

#define JOB_HELD_MAX (100u << 20) /* bytes of a stream that are held */
#define JOB_STDIN_MAX (64u << 20) /* bytes for stdin that the program has not taken */

struct confine;

struct job_options {
    char *const *argv;
    char *const *env;
    const char *cwd;
    int start_dir;
    const struct user *user;     /* NULL: our own */
    const struct confine *walls; /* NULL: none */
    long long umask;             /* < 0: our own */
    const char *input;
    size_t input_len;
    bool stdin_open;
    bool latin1;               /* each byte is a character of its own, in both directions */
    int64_t timeout_ms;        /* < 0: none */
    unsigned short rows, cols; /* of its terminal; 0: it has pipes */
    struct spawn_accept accept;
};

struct job_stream {
    int fd;                     /* -1: at its end */
    struct loop_source *source; /* NULL: not read for the moment */
    struct fifo raw;
    bool discard; /* the job is over: what comes now is thrown away */
};

struct job_stdin {
    int fd;
    struct loop_source *source;
    struct fifo pending;
    struct memory_share share;
    bool ever_open; /* writes are expected */
    bool closing;   /* once all is written */
    bool open_line; /* what was written last doesn't end a line */
};

/* A call that waits. */
struct job_waiter {
    struct job_waiter *next;
    void (*ready)(void *arg);
    void *arg;
};

struct job {
    struct loop *loop;
    struct record record;
    pid_t pid;
    bool latin1, reaped;
    const struct confine *walls; /* NULL: none */
    bool terminal;               /* it has one in the place of pipes: out[0] and stdin are the other end */
    struct job_stream out[2];
    struct memory_share share; /* of both streams */
    struct job_stdin in;
    struct loop_source *timeout;
    struct {
        struct loop_source *counter; /* NULL: the number of kills is known */
        unsigned long long kills;    /* when it started */
    } oom;
    struct {
        bool began; /* before it ended */
        struct tree_end *ending;
        size_t left; /* processes that the last one could not end */
    } kill;
    struct {
        struct job_waiter *news;
        struct job_waiter *end; /* of the tree */
    } waiting;
    struct {
        void (*gone)(void *arg); /* it is gone, called maybe more than once; NULL: nothing */
        void *arg;
    } owner;
};

/* Starts it; -1 with ERR_TOOL that names what can't be used. */
int job_start(struct job *j, struct loop *loop, const struct job_options *options, struct err *err);

/* Something to tell beyond what has been acknowledged: output, or the end. */
bool job_has_news(const struct job *j);
/* Adds what is new to the record, as much as one answer may bring. */
void job_take(struct job *j);
/* Over, and without descendants. */
bool job_is_gone(const struct job *j);

/* Looks whether somebody who waits is to be told something, or whether it is gone. */
void job_notify(struct job *j);

/* Calls w->ready, once, when there is news, or when all descendants have been ended. w is the caller's; taken
 * out of the list first. */
void job_wait(struct job *j, struct job_waiter *w);
void job_kill(struct job *j, struct job_waiter *w);
void job_forget(struct job *j, struct job_waiter *w);
/* Kills it, and nobody waits for that; not when it has ended. */
void job_abandon(struct job *j);

/* Data is text (UTF-8). ERR_TOOL, and nothing taken, when stdin isn't open or too much is waiting. That
 * nobody reads it is no error, and counted. */
int job_write(struct job *j, const char *data, size_t n, struct err *err);
void job_close_stdin(struct job *j);

int job_resize(struct job *j, unsigned short rows, unsigned short cols, struct err *err);

/* To the job's own process group. */
int job_signal(struct job *j, const char *name, struct err *err);

/* Wakes all who wait for news, whether there are any or not. */
void job_wake(struct job *j);

/* Writes all of it down for another program that takes this one's place, which has the waiters answered
 * before; -1 with ERR_TOOL: not now. And the way back: checks all of it, and with a loop goes on. */
int job_save(const struct job *j, struct handover_out *out, struct err *err);
int job_take_over(struct job *j, struct loop *loop, const struct handover *h, struct err *err);

/* Closes everything; the group to end. */
pid_t job_hang_up(struct job *j);

#endif
