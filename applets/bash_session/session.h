/* One session, inside its keeper: no JSON, no socket. The methods, the unit tests and nothing else stand
 * above it.
 *
 * Everything runs on the keeper's loop. A call (read or run) is begun with session_read or session_run and
 * ends with its done callback, exactly once; calls on one session are served one after the other, in the
 * order they came. */
#ifndef APPLETS_BASH_SESSION_SESSION_H
#define APPLETS_BASH_SESSION_SESSION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "bash_session_types.h"
#include "buf.h"
#include "err.h"
#include "handover.h"
#include "loop.h"
#include "pty.h"
#include "session_channel.h"
#include "session_input.h"
#include "session_output.h"
#include "term_filter.h"
#include "user.h"

struct session_options {
    const struct user *user; /* NULL: the server's own */
    const char *user_name;   /* for those who look; a uid that has no name in decimal */
    const char *cwd, *shell; /* NULL: the server's directory; bash, else sh */
    char **env;              /* whole environment of the shell */
    bool keeps_history;      /* in a file, as it does by itself */
    int start_dir;
    unsigned short rows, cols;
};

/* The last run that was begun, until somebody has got how it ended: whoever asks for it then gets that, also
 * when the client that began it has gone. */
struct last_run {
    bool open;
    bool waited;      /* by the active call */
    bool told;        /* the shell has told that it is over: what comes then is the prompt */
    bool prompt_read; /* a read got that */
    bool ended;       /* then: */
    struct run_result result;
    struct buf text; /* its output */
    char *cwd;
};

/* What the shell has told last, while it is not known yet that it was the shell (kind 0: nothing). */
struct told {
    struct channel_message message;
    int n;                   /* how many there were */
    long long since, looked; /* now_ms() */
    int stuck;               /* looks in a row at a shell that waits though nothing has come of it */
};

struct session_call;
struct interrupt;
struct viewer;

struct session {
    struct loop *loop;
    struct session_options options; /* for restarts */
    char shell_path[256];

    struct pty pty;
    const char *startup;    /* the name of the shell's start-up file */
    struct channel channel; /* where the shell tells that it is about to prompt */
    struct told told;
    bool doubted; /* it told, or wanted to, and was not believed: what it says when it is asked counts */
    struct loop_source *pty_source, *channel_source, *child_source;
    pid_t shell;     /* 0: none runs */
    int exit_status; /* as of waitpid, once the shell has ended */
    bool told_end;   /* a call has said that the shell ended */

    struct term_filter filter;
    struct output output;    /* what reads will get */
    struct input input;      /* what the terminal has not taken yet */
    struct capture *capture; /* what the run in progress prints and nobody got yet; NULL: none */
    struct last_run last_run;
    char *ps2;               /* the continuation prompt, as the shell last told */
    struct buf tail;         /* the last that was printed */
    size_t tail_after_mark;  /* bytes of it since the shell told */
    struct buf shown_prompt; /* what it last prompted with */
    bool prompt_noted;       /* it is the one that the shell last told of */
    char *cwd;               /* as the shell last told */
    int status;              /* of the last command, as the shell last told */
    bool adopted;            /* exec bash has taken its place, and got our hook */
    bool has_editor;         /* it had its line editor when it was last looked at */
    unsigned long prompts;   /* how often it told */
    long long last_prompt;   /* now_ms() when it told last */
    bool prompt_after_input; /* it told since it took the last input */
    long long last_activity; /* now_ms() */

    struct viewer *viewers;
    struct buf recent; /* raw output, for viewers to come */

    struct session_call *calls, **calls_end; /* the first is being served */
    struct loop_source *tick;
    int tick_ms, thorough_ms;
    long long thorough_at;
    struct tree_end *ending;
    struct interrupt *interrupt; /* in progress; NULL: none */
};

/* Starts the shell. -1: nothing is left of it. */
int session_start(struct session *s, struct loop *loop, const struct session_options *options,
                  struct err *err);

/* Ends the shell and all that hangs below this process, and starts another. */
void session_restart(struct session *s, void (*done)(void *arg, const struct err *err), void *arg);

/* Writes all of it down for another program that takes this one's place; -1 with ERR_TOOL: not now. And the
 * way back: checks all of it, and with a loop goes on. */
int session_save(const struct session *s, struct handover_out *out, struct err *err);
int session_take_over(struct session *s, struct loop *loop, const struct handover *h, struct err *err);

/* Closes the terminal and what waits for the session; the shell's process group (0: none), for those who end
 * it. */
pid_t session_hang_up(struct session *s);

/* ---- calls ----
 *
 * *call is set before the call can be answered, which may be before the function returns. */

struct read_request {
    const char *input; /* NULL: none */
    size_t input_len;
    int64_t wait_ms, idle_ms;
    size_t max;
};
/* `text` is valid during the call. Without text, err says why. */
typedef void (*read_done_fn)(void *arg, struct span text, const struct err *err);
void session_read(struct session *s, const struct read_request *r, read_done_fn done, void *arg,
                  struct session_call **call);

struct run_request {
    const char *command; /* NULL: wait on for the last one, whose run ended before the command did */
    size_t command_len;
    int64_t timeout_ms; /* < 0: none */
    size_t max;
    bool interrupt_abandoned; /* its command ends where nobody waits for it any more */
};
typedef void (*run_done_fn)(void *arg, const struct run_result *result, const struct err *err);
void session_run(struct session *s, const struct run_request *r, run_done_fn done, void *arg,
                 struct session_call **call);

/* The caller has gone before the answer: what it would have got is there for the next one. */
void session_abandon(struct session *s, struct session_call *call);

/* After the answer: whether it arrived. What did not is given again by the next read. The call ends with
 * this. */
void session_delivered(struct session *s, struct session_call *call, bool delivered);

/* ---- the rest ---- */

int session_signal(struct session *s, const char *name, struct err *err);
int session_resize(struct session *s, int rows, int cols, struct err *err);
void session_status(struct session *s, struct session_status *status);

#endif
