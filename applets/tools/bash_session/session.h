/* One session, inside its keeper: no JSON, no socket. The methods, the unit tests and nothing else stand
 * above it. Its parts, from below:
 *
 *   terminal  session_terminal, with _input (what is typed), _attach (who looks in), _wait (who reads it)
 *   shell     session_state, with _shell and _channel (what it is told, and tells), _told, _start, _interrupt
 *   calls     session_calls (the queue), session_read, session_run, with _output and _last_run
 *   session   this: start, restart, signals, status
 *
 * Everything runs on the keeper's loop. A call (read or run) is begun with session_read or session_run and
 * ends with its done callback, exactly once; calls on one session are served one after the other, in the
 * order they came. */
#ifndef APPLETS_BASH_SESSION_SESSION_H
#define APPLETS_BASH_SESSION_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "bash_session_types.h"
#include "buf.h"
#include "err.h"
#include "handover.h"
#include "loop.h"
#include "session_inner.h"
#include "session_output.h"
#include "session_pace.h"
#include "session_state.h"
#include "session_terminal.h"

/* Input that is given a line at a time. */
struct lines {
    enum { LINES_NONE, LINE_TYPED, LINE_ENTERED } state;
    bool more;       /* in the rest */
    struct buf rest; /* without its last line end */
};

/* The last run that was begun, until somebody has got how it ended: whoever asks for it then gets that, also
 * when the client that began it has gone. */
struct last_run {
    bool open;
    bool waited;      /* by the active call */
    bool told;        /* the shell has told that it is over: what comes then is the prompt */
    bool prompt_read; /* a read got that */
    bool cut;         /* it was interrupted, and the shell drops what it had still to do */
    bool ends_line;   /* what takes the line that it shows ends that on the terminal too: that is no output */
    bool ended;       /* then: */
    struct run_result result;
    struct buf text; /* its output */
    char *cwd, *error;
    struct lines lines;
};

struct session_call;

struct calls {
    struct session_call *first, **end; /* the first is being served */
    bool told_end;                     /* one has said that the shell ended */
};

/* Layers, each of which calls those in front of it alone, and tells what happens to its owner. */
struct session {
    struct loop *loop;
    struct pace pace;
    struct terminal terminal;
    struct session_options options; /* for restarts */
    struct shell shell;
    struct output output;    /* what reads will get */
    struct capture *capture; /* what the run in progress prints and nobody got yet; NULL: none */
    struct last_run last_run;
    struct inner inner; /* behind the shell, to which the last run was given */
    struct calls calls;
    struct tree_end *ending; /* a restart in progress; NULL: none */
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
    int64_t ready_ms;   /* for the shell to take it; < 0: timeout_ms, and READY_MS (session_run.c) at least */
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
