/* Shared by the files of a session alone. */
#ifndef APPLETS_BASH_SESSION_SESSION_INTERNAL_H
#define APPLETS_BASH_SESSION_SESSION_INTERNAL_H

#include <signal.h>

#include "session.h"
#include "session_wait.h"

/* Of struct session, where pointers have 8 bytes: see session_move.c. */
#define SESSION_SIZE 1264

/* LOST: its client has not taken the answer for so long that the next call was begun. */
enum call_state { CALL_QUEUED, CALL_ACTIVE, CALL_ANSWERED, CALL_LOST };

/* What reads and runs do differently. */
struct call_kind {
    void (*begin)(struct session *s, struct session_call *c);
    /* Answers when it is time; otherwise the milliseconds until it is whatever happens. -1: answered. */
    int64_t (*check)(struct session *s, struct session_call *c);
    void (*delivered)(struct session *s, struct session_call *c, bool delivered);
    /* False: the shell is about to take what it was given, and the call stays, as an orphan, until it has. */
    bool (*abandon)(struct session *s, struct session_call *c);
};

/* Where a run is. */
enum run_phase {
    RUN_READY,   /* waits for the shell to be at its prompt */
    RUN_ASKED,   /* the shell's line editor waits, and the shell has not told: it is being asked why */
    RUN_OFFERED, /* the line editor is to take the command */
    RUN_TYPED,   /* the shell has it */
};
struct run {
    enum run_phase phase;
    bool typed;     /* RUN_ASKED: after the command, not before */
    bool asked;     /* once is enough */
    int again;      /* how often a key was given again */
    bool adopted;   /* asked by a typed line, which prints nothing, and not by a key */
    bool answered;  /* with a result, which is kept until it is known to have arrived */
    bool interrupt; /* when it is abandoned */
    unsigned long long omitted;
    long long phase_began; /* now_us() */
    long long progress;    /* now_ms() when it was entered, or the code was last seen to be read */
    size_t untaken;        /* of the code */
};

struct session_call {
    struct session_call *next;
    const struct call_kind *kind;
    enum call_state state;
    union {
        read_done_fn read;
        run_done_fn run;
    } done;
    void *arg;
    struct buf input;
    bool has_input;
    bool orphan;               /* abandoned: its callback is not called any more */
    struct buf answer;         /* while it may have to be given again */
    long long began, answered; /* now_ms() */
    size_t max;
    int64_t wait_ms, idle_ms; /* reads */
    int64_t timeout_ms;       /* runs */
    struct run run;
};

/* ---- session_calls.c ---- */
struct session_call *session_call_new(struct session *s, const struct call_kind *kind, const char *input,
                                      size_t len, void *arg);
void session_call_answered(struct session_call *c);
/* The shell is back at a prompt, or a program waits for input on the terminal, and everything written has
 * been read. */
bool session_settled(struct session *s);
/* Something has happened (output, input taken, the shell told): waiting calls look again soon. */
void session_stir(struct session *s);
/* Looks whether it is time to answer the active call. */
void session_evaluate(struct session *s);
void session_tick(void *session);

/* ---- session_run.c ---- */
bool session_is_run(const struct session_call *c);
/* Whether the shell has told before that the last run has ended, so that only its prompt is waited for; from
 * now on it has. What comes then, if somebody interrupts there, is none of the run's output. */
bool session_run_told(struct session *s);
/* A message of the shell, which a run may wait for. */
void session_run_message(struct session *s, const struct channel_message *m);

/* The line editor waits, though it has been given a key and the code for it: somebody else has read that. */
bool session_run_missed(const struct session *s);
/* Then both are given again, some times. */
void session_run_again(struct session *s);

/* ---- session_told.c ---- */
/* Reads what the shell tells; true when something has come of it. */
bool session_hear(struct session *s);
/* Forgets what was heard and not believed yet. */
void session_hear_afresh(struct session *s);
/* Lets a shell go on that waits for an answer to what has not been heard. */
void session_release_stuck(struct session *s);

/* ---- session_run_answer.c ---- */
#define STATUS_UNKNOWN (-1)
#define SHELL_INTERRUPTED (128 + SIGINT)
/* Each answers the call, and returns what a check returns then (-1). */
int64_t session_run_give(struct session_call *c, struct run_result *r);
int64_t session_run_answer(struct session *s, struct session_call *c, enum run_state state);
int64_t session_run_fail(struct session_call *c, const struct err *err);
/* Says what the session is busy with. */
int64_t session_run_refuse(const struct session *s, struct session_call *c);
/* This shell doesn't tell. */
int64_t session_run_refuse_for_good(const struct session *s, struct session_call *c);

/* ---- session_last_run.c ---- */
/* What is printed from here on is the session's again; what was captured is dropped. */
void session_stop_capture(struct session *s);
/* A run begins, and is waited for. */
void session_run_opened(struct session *s);
/* It goes on without anybody who waits for it. */
void session_run_leave(struct session *s);
/* It is over, as `result` says. */
void session_run_ended(struct session *s, const struct run_result *result);
/* Its end is known to who asked for it, or of no interest any more. */
void session_run_close(struct session *s);
/* What it has printed and nobody got is the session's, for who reads now. */
void session_run_yield(struct session *s);
/* Bytes of that. */
unsigned long long session_run_unread(const struct session *s);
/* Somebody types: if it is over, what comes from here on is none of it. */
void session_run_typed(struct session *s);
/* An answer of it did not arrive. */
void session_run_unheard(struct session *s, const struct buf *answer, unsigned long long omitted);

/* ---- session_interrupt.c ---- */
/* Called before an interrupt is sent: sees to it that it is not lost. */
void session_interrupt_follow(struct session *s);
/* Interrupts what the shell was given to do, in a moment when it can be. */
void session_interrupt_run(struct session *s);
/* Watches no longer, if it did. */
void session_interrupt_end(struct session *s);

/* ---- session.c ---- */
/* Everything that a loop has to do with one that was started elsewhere. */
void session_watch(struct session *s);
/* Reads what the terminal has; true when there was something. */
bool session_drain(struct session *s);
/* The same, and what looked like the front of an escape sequence. */
void session_drain_all(struct session *s);
enum waiting session_look(const struct session *s, bool thorough);
/* "exit status 1", "signal 9 (Killed)". */
void session_describe_exit(int status, struct buf *out);
/* Exit status; -N for signal N. */
int session_exit_code(int status);
/* The shell waits: what it has printed since it told is its prompt. */
void session_note_prompt(struct session *s);
/* The line editor shows the continuation prompt. Text is all there is to tell it from the first one when the
 * hook is gone, and asking the shell would break bash's parser in the middle of a command (5.2). */
bool session_continues(const struct session *s);
/* Back at the shell's own prompt, as opposed to a program, a `read` or an unfinished command that waits for
 * input. */
bool session_at_prompt(const struct session *s, enum waiting waiting);
#endif
