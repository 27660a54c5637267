/* Calls of a runtime: a program with bytes for its stdin, whose output is kept up to a bound, for so long.
 *
 * Whatever is on the other side: endless output, none at all, a program that hangs or leaves its pipes to
 * others: a call ends. The program has a session of its own, and is killed with its process group. */
#ifndef INJECT_TRANSPORT_H
#define INJECT_TRANSPORT_H

#include <stdbool.h>
#include <sys/types.h>

#include "buf.h"
#include "err.h"
#include "json.h"

struct transport {
    int signal_fd; /* CHLD, and those that end us, which are blocked */
    int start_dir;
    int timeout_ms;
    int interrupted; /* the signal that wants us to end; 0: none */
    bool cleaning;   /* what is still called after that goes on */
    int calls;       /* of the runtime so far */
    size_t sent; /* bytes into the target: stdin, and the words that are run there (by whoever knows them) */
};

/* Once a process: blocks the signals. */
int transport_init(struct transport *t, int timeout_ms, struct err *err);
void transport_release(struct transport *t);
/* Takes the signals that have come: t->interrupted. */
void transport_signals(struct transport *t);

enum transport_end {
    TRANSPORT_ENDED,     /* by itself: status says how */
    TRANSPORT_FAILED,    /* not started, or lost: err says why */
    TRANSPORT_TIMEOUT,   /* killed */
    TRANSPORT_FLOOD,     /* killed: more output than anything has to say */
    TRANSPORT_INTERRUPT, /* killed, since we are to end */
};

#define TRANSPORT_OUT_MAX (1u << 20)
#define TRANSPORT_ERR_MAX (64u << 10) /* of stderr the first bytes count, the rest is let go */

/* What becomes of stdin: it stays open, or input[1] and [2] are sent and it stays open, or they are sent and
 * it is closed. With TRANSPORT_ENDS it is closed too, and nothing is asked any more. */
enum transport_step { TRANSPORT_WAITS, TRANSPORT_SENDS, TRANSPORT_CLOSES, TRANSPORT_ENDS };

struct transport_call {
    struct span input[3]; /* stdin, one behind the other */
    /* May be NULL. Otherwise stdin stays open, and whenever there is more output, and when impatient_ms have
     * gone by (0: never), this is asked what becomes of it. It may set input[1] and [2], whose bytes stay. */
    enum transport_step (*answered)(void *arg, struct transport_call *c);
    void *answered_arg;
    int impatient_ms;
    bool impatient; /* they have */
    size_t out_max; /* 0: TRANSPORT_OUT_MAX */
    int timeout_ms; /* 0: the transport's, from when all is sent; the more there is to send, the more time
                       there is */
    /* results */
    struct buf out, err;
    int status;   /* exit status; 128+N: signal N */
    size_t taken; /* bytes of the input that went into the pipe */
};
#define TRANSPORT_CALL_INIT                                                                                  \
    {                                                                                                        \
        .out = BUF_INIT, .err = BUF_INIT                                                                     \
    }
void transport_call_release(struct transport_call *c);
#define TRANSPORT_CALL_AUTO __attribute__((cleanup(transport_call_release)))

/* Starts a runtime, which leads a process group of its own, with pipes at its stdin, stdout and stderr: ours
 * ends, which don't block, in fds. `direct`, which may be NULL, is filled where an engine's socket is spoken
 * to instead (engine.h). Its pid; -1 with ERR_TOOL. */
struct engine_direct;
pid_t transport_start(int start_dir, char *const *argv, int fds[3], struct engine_direct *direct,
                      struct err *err);
/* The socket of the engine by which the last one was started in place of its client (engine.h); NULL: none
 * was. */
extern const char *transport_over;

/* The end of what was started so: its stdin ends, by which the target's side learns of it, and it has some
 * seconds to end itself. */
void transport_end_stream(pid_t pid, int *in);

/* The error is ERR_TOOL, and filled unless the program ended by itself. */
enum transport_end transport_run(struct transport *t, char *const *argv, struct transport_call *c,
                                 struct err *err);

/* The end of what the program said on stderr, or where that was nothing on stdout, fit for a person's
 * terminal, on one line; "" when it said nothing. */
void transport_said(const struct transport_call *c, struct buf *text);

/* Appends text from there so that it can be shown: no escape sequences, no control characters, on one line,
 * at most `max` bytes of its end. */
void transport_show(struct buf *out, const char *s, size_t n, size_t max);

/* Appends what can be read of a program's stderr as transport_show has it, or throws it away where less than
 * `max` bytes wouldn't hold it. False: nothing more comes. */
bool transport_hear(int fd, struct buf *said, size_t max);

/* True for text that a terminal shows as it is: valid UTF-8 without control characters. */
bool transport_is_plain(const char *text);

#endif
