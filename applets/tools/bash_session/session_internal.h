/* Shared by the files of a session alone. */
#ifndef APPLETS_BASH_SESSION_SESSION_INTERNAL_H
#define APPLETS_BASH_SESSION_SESSION_INTERNAL_H

#include "session.h"
#include "session_wait.h"

/* Of struct session, where pointers have 8 bytes: see session_move.c. */
#define SESSION_SIZE 1640

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
    RUN_SHOWN,   /* a shell behind the shell is to take it, and has not said that it has */
    RUN_TYPED,   /* the shell has it */
};
struct run {
    enum run_phase phase;
    bool announced; /* RUN_OFFERED: that it begins is told, and what was shown before is none of its output */
    bool typed;     /* RUN_ASKED: after the command, not before */
    bool prompted;  /* and its prompt was the last that had been shown */
    bool asked;     /* once is enough */
    int again;      /* how often a key was given again */
    bool adopted;   /* asked by a typed line, which prints nothing, and not by a key */
    bool answered;  /* with a result, which is kept until it is known to have arrived */
    bool interrupt; /* when it is abandoned */
    long long ready_ms; /* for the shell to take the command */
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
    size_t unread;             /* reads: bytes that were there when it began */
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
/* Looks whether it is time to answer the active call (for a pace: `session` is one). */
void session_evaluate(void *session);

extern const struct call_kind session_run_kind;

/* ---- session_run_key.c ---- */
#define ASK_MS 2000 /* for an answer to a key */
void session_run_enter(struct session_call *c, enum run_phase phase);
/* The run that is being served; NULL: none. */
struct session_call *session_active_run(const struct session *s);
/* A key has been sent: the shell is about to take code or the command. */
bool session_run_is_about_to_take(const struct session_call *c);
/* Has the shell run code, by a key or a line. The line editor prints a line end for a key, which is nobody's
 * output. */
void session_send_code(struct session *s, const struct buf *code, const char *typed);
/* What else came meanwhile is somebody's: the run's own, or, before the command is typed, of what runs in the
 * background. */
void session_code_done(struct session *s, const struct session_call *c, bool typed);
/* bash's own line editor is there to be asked, at what is no continuation prompt. */
bool session_can_ask(const struct session *s);
/* Asks the shell for its state, after the command was typed or before; what a check returns. */
int64_t session_run_ask(struct session *s, struct session_call *c, bool typed);
/* The shell is given the command: from here on it is the run's output that comes. */
void session_run_typed_in(struct session *s, struct session_call *c);
/* Somebody interrupted the shell when it was to take what the key stands for: a command was not begun, a
 * question may be asked again. */
int64_t session_run_lose_key(struct session *s, struct session_call *c);
/* What the shell tells, as far as runs are concerned; `arg` is the session. */
extern const struct shell_owner session_shell_owner;

/* ---- session_shown.c ---- */
#ifdef TOOLBOX_GUEST
#define session_show_typed(s, keys, n) ((void)0)
#define session_show_command(s, command, edits) ((void)0)
#else
/* Somebody types, or a run is about to, into a line editor or not: to be called before that is done. */
void session_show_typed(struct session *s, const char *keys, size_t n);
void session_show_command(struct session *s, const struct buf *command, bool edits);
#endif

/* ---- session_lines.c ---- */
/* Gives a program that tells nothing what it is to take, a line at a time. */
int64_t session_lines_begin(struct session *s, struct session_call *c);
/* Types the rest at once, if there is one: nobody waits for it. */
bool session_lines_type_all(struct session *s);
/* It waits for its terminal. */
int64_t session_lines_go_on(struct session *s, struct session_call *c);

/* ---- session_run_inner.c ---- */
/* A shell or a Python behind the shell is at its prompt, or may be before long (`soon`). */
bool session_inner_waits(struct session *s, bool *soon);
/* Has it take the command; what a check returns. */
int64_t session_inner_give(struct session *s, struct session_call *c);
/* Whether it has. */
int64_t session_inner_check(struct session *s, struct session_call *c);
/* It has told that the command is over, and is at its prompt again. */
bool session_inner_is_back(const struct session *s, bool settled);
void session_take_note(void *session, const char *text);

/* ---- session_run_answer.c ---- */
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
/* What the terminal shows is the run's, or for reads (struct terminal_owner; `session` is one). */
size_t session_paste_end(const void *session, const char *bytes, size_t n);
void session_take_text(void *session, const char *text, size_t n);
/* What was printed since the shell told, which is its prompt: something. */
bool session_prompt_shown(const struct session *s);

/* ---- session.c ---- */
/* Ties the parts together. */
void session_own(struct session *s, struct loop *loop);
#endif
