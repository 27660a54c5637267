/* The inside of `mcp serve`: one process that reads messages, hands each tool call to a process of its own
 * and writes what comes of it. Nothing here blocks but for writing to a file.
 *
 * From the top down, each calling those below it alone:
 *
 *   mcp_serve.c       where it is to be served
 *   serve_words.c     the command line
 *   serve_named.c     a session that clients come to one after the other
 *   serve_http.c      clients that come by HTTP: who may
 *   serve_session.c   what is one client's of them
 *   serve_doors.c     where they come in
 *   serve_relay.c     those whose server runs elsewhere, and serve_far.c where
 *   serve_events.c    what they are answered with: events, which can be asked for again
 *   serve_end.c       begin and end
 *   serve_message.c   what a message is, and whether it is one: revisions, methods, errors
 *   serve_call.c      calls: when each is begun, how it ends
 *   serve_said.c      what its process says of it
 *   serve_work.c      the inside of such a process (mcp_tool.h)
 *   serve_arguments.c arguments as they really come
 *   serve_answer.c    results and notifications as JSON
 *   serve_io.c        lines in, lines out */
#ifndef APPLETS_MCP_SERVE_SERVE_H
#define APPLETS_MCP_SERVE_SERVE_H

#include <stdbool.h>
#include <sys/types.h>

#include "buf.h"
#include "fifo.h"
#include "json.h"
#include "loop.h"
#include "mcp_tool.h"

#define SERVE_LINE_MAX (64u << 20) /* bytes of a message */
#define SERVE_OUT_MAX (4u << 20)   /* bytes that wait for a slow client, until nothing more is read from it */
#define SERVE_CALLS_MAX 4096       /* calls that are open at once */
#define SERVE_CALL_BYTES (128u << 20) /* of their requests */
#define SERVE_WORKERS_MAX 500         /* of them at work */

/* Protocol revisions in the order of time. The last one has no handshake: every request names it. */
enum revision {
    REVISION_NONE,
    REVISION_2024_11_05,
    REVISION_2025_03_26,
    REVISION_2025_06_18,
    REVISION_2025_11_25,
    REVISION_2026_07_28,
    REVISION_END
};
extern const char *const revision_names[REVISION_END];

/* Severities, as syslog has them. */
enum { LEVEL_WARNING = 3, LEVEL_EMERGENCY = 7, LEVEL_NEVER = 8 };
extern const char *const level_names[LEVEL_NEVER];

/* Who asks: the one at the other end of the pipe, or one of those that come by HTTP. */
struct client {
    enum revision revision; /* agreed by initialize */
    int level;              /* of log messages, as it has set it */
    bool many; /* requests of any number of clients, so that an id is nobody's, nor stays for the next one */
};

struct sse; /* serve_events.h */

/* The requests of one array: answered by one, once the last of them is. */
struct batch {
    struct buf answer;
    size_t open;
    struct sse *stream;
};

/* Whom an answer is for. */
struct origin {
    struct span id;         /* s == NULL: it could not be read */
    enum revision revision; /* by which the answer is made */
    struct client *client;
    struct sse *stream;  /* where to, and what is said of the request on the way; NULL: the pipe */
    struct batch *batch; /* NULL: none */
};

/* A session in which calls are done one after the other. */
struct lane {
    struct lane *next;
    char *key;
    size_t users; /* calls that stand in it, or will */
    bool taken;   /* by the one that is at work */
};

/* What was asked. */
struct call_asks {
    char *text; /* the request; the origin's id, token and arguments lie in it */
    size_t n_text;
    struct span token, arguments; /* s == NULL: none */
    int level;                    /* of the log messages that it wants */
};

/* The process of a call. */
struct call_process {
    pid_t pid; /* 0: it has not begun */
    int pipe;
    struct loop_source *source, *child;
    struct buf in;
    bool closed, reaped;
    int exit_status;
    long long started_ms;
};

/* And what it has said. */
struct call_said {
    char *session, *status;
    long long job;  /* whose output the answer tells; 0: none */
    bool job_ended; /* and that it has ended */
    struct buf structured, plain, image;
    struct err error; /* code 0: none */
};

/* A request that is not answered at once: a tool call, or a subscription (tool == NULL), which only its end
 * answers. */
struct call {
    struct call *next, **link;
    struct serve *serve;
    struct origin origin;
    struct call_asks asks;
    const struct mcp_tool *tool;
    int (*task)(struct work *w, struct err *err); /* what its process does */
    bool silent;                                  /* cancelled, or ours: nobody gets an answer */
    bool cancelled;                               /* and its process has been told to end */
    struct lane *lane;
    struct call_process process;
    struct call_said said;
};

/* A list of names. */
struct names {
    char **list;
    size_t n;
};

struct serve;

/* Whom the lower layers tell what has happened: the calls go downwards only. */
struct serve_owner {
    void (*line)(struct serve *s,
                 struct span line); /* a message; s == NULL: one that was too long, and is gone */
    void (*stalled)(
        struct serve *s); /* the client has closed its side, and what it sent can't all be read yet */
    void (*deaf)(struct serve *s);             /* the client reads no more */
    void (*advanced)(struct serve *s);         /* the input has ended, output has gone, or a call has ended */
    void (*over)(struct serve *s, int status); /* all of it has ended */
    /* For a stream; with s == NULL there is nothing to say. `last`: its request, or batch, is answered. */
    void (*said)(struct sse *stream, struct span message, bool last);
};

/* What comes from the client (serve_io.c). */
struct serve_input {
    int fd;
    struct buf line;
    size_t looked_at; /* bytes of `line` that hold no newline */
    bool skipping;    /* the rest of a line that is too long */
    bool ended;
    struct loop_source *source, *timer;
};

/* What goes to it (serve_io.c). */
struct serve_output {
    int fd;
    struct fifo waiting;
    struct loop_source *source; /* NULL: a file, written at once */
    bool ended;
    bool full; /* reading waits until it has gone */
};

/* The calls (serve_call.c). */
struct serve_calls {
    struct call *first, **last;
    size_t n, n_workers, bytes;
    struct lane *lanes;
    struct loop_source *tick;  /* each second those at work that want it tell of their progress; NULL: none */
    struct loop_source *retry; /* no process could be had; NULL: they are begun at once */
    bool scheduling; /* it is being looked at what can begin: not again from inside, and no end of all */
};

/* What they have made (serve_said.c). */
struct serve_made {
    char *shell;    /* the session of calls that name none */
    char *browser;  /* the one browser session; NULL: none */
    char *computer; /* likewise the desktop's */
    struct names sessions;
    struct job_notes jobs;
};

/* What the command line has of the tools. */
struct serve_offer {
    const char *tools;   /* pattern of their names; NULL: all of them but the desktop's, and those of the
                            browser are   listed where there is one */
    const char *prefix;  /* of the names that clients see */
    bool read_only;      /* none that changes anything */
    bool computer;       /* the desktop's is offered, whatever `tools` says */
    bool schemas;        /* of results are listed */
    bool interrupt_busy; /* a shell's command, where another one comes for it */
    bool keep;           /* sessions and jobs outlive us */
    const char *session; /* that clients come to, whatever it is called; NULL: each has its own */
};

/* How all of it ends (serve_end.c). */
struct serve_end {
    bool begun;
    bool swept; /* what was made is being ended */
    struct loop_source *patience, *leaving;
};

struct serve {
    const struct serve_owner *owner;
    struct loop *loop;
    pid_t pid; /* our own */
    const struct serve_offer *offer;
    struct client client; /* at the other end of the pipe */
    struct serve_input in;
    struct serve_output out;
    struct serve_calls calls;
    struct serve_made made;
    struct serve_end end;
};

/* ---- serve_io.c ---- */

void serve_io_start(struct serve *s);
/* Bytes that came from the client. */
void serve_feed(struct serve *s, const char *data, size_t n);
/* The client has closed its side: what came behind the last newline is a message as well. */
void serve_feed_end(struct serve *s);
/* A message for a stream, or to the client (NULL), with a newline behind it. `last`, and no message: as of
 * serve_owner.said. */
void serve_send(struct serve *s, struct sse *to, struct span message, bool last);
/* Reads on, or pauses, as the amount of waiting output wants it. */
void serve_io_balance(struct serve *s);

/* ---- serve_answer.c ---- */

/* `members`: the result's own, without braces. */
void serve_result(struct serve *s, const struct origin *o, struct span members);
void serve_error(struct serve *s, const struct origin *o, const struct err *err, struct span data);
/* A request of a batch has ended without an answer. */
void serve_nothing(struct serve *s, const struct origin *o);
void serve_batch_release(struct serve *s, struct batch *b); /* sends it when all of it is answered */
void serve_tool_result(struct serve *s, struct call *c);
void serve_subscription_result(struct call *c); /* a subscription's, which ends it */
void serve_progress(struct call *c);
void serve_log(struct call *c, const char *level, const char *text);

void put_initialize(struct buf *out, enum revision r, const struct serve_offer *offer);
void put_discover(struct buf *out, const struct serve_offer *offer);
void put_versions(struct buf *out);
void put_tools(struct buf *out, enum revision r, const struct serve_offer *offer);
bool serve_offers(const struct serve_offer *offer, const struct mcp_tool *t);

/* ---- serve_call.c ---- */

/* Takes the request's text over from `value`, and begins when it can. */
struct call *serve_call_new(struct serve *s, const struct origin *o, struct span value);
void serve_call_submit(struct call *c); /* members are set */
struct call *serve_call_find(struct serve *s, const struct client *client, struct span id);
/* Its process ends, and nobody gets an answer. */
void serve_cancel(struct call *c);
void serve_call_end(struct call *c); /* forgets it */
/* A task of our own in the name of a session (NULL: none), with no one to answer. */
void serve_task(struct serve *s, int (*task)(struct work *w, struct err *err), const char *session,
                long long job);
void serve_schedule(struct serve *s);

/* ---- serve_said.c ---- */

/* A frame from the call's process; `data` has a NUL behind. */
void serve_said(struct call *c, char kind, struct span data);
/* What the answer tells of a job has been told. */
void serve_job_told(const struct call *c);
void serve_forget_made(struct serve *s);

/* ---- serve_end.c ---- */

/* Everything but what it reads from: loop, offer and keep are set. */
void serve_begin(struct serve *s);
extern const struct serve_owner serve_pipe_owner; /* of one who has the pipe alone */
/* serve_owner.advanced */
void serve_advanced(struct serve *s);
/* Nobody is there any more: ends what runs and what was made, and tells the owner. */
void serve_finish(struct serve *s);
/* Once it is over: what is still there is killed, and all memory freed. */
void serve_release(struct serve *s);

/* ---- serve_message.c ---- */

/* s == NULL: it was too long, and is gone. What it asks for is answered to the stream (NULL: the pipe). */
void serve_message(struct serve *s, struct client *client, struct sse *to, struct span line);

/* ---- serve_arguments.c ---- */

/* An object with the arguments that are `given` (s == NULL: none), as the tool's fields want them. */
void serve_arguments(const struct mcp_tool *tool, struct span given, struct buf *out);

/* ---- serve_work.c ---- */

/* What a process says: a head, and n bytes. */
struct frame {
    char kind;
    unsigned n;
};
enum {
    FRAME_STATUS = 'P',
    FRAME_LOG = 'L', /* level, NUL, text */
    FRAME_MADE = 'S',
    FRAME_MADE_DEFAULT = 'D',
    FRAME_CLOSED = 'C',
    FRAME_BROWSER = 'B',
    FRAME_COMPUTER = 'G',
    FRAME_JOB = 'J', /* long long, as of the next two */
    FRAME_JOB_TOLD = 'K',
    FRAME_JOB_ENDED = 'X',
    FRAME_JOB_OUTPUT = 'O', /* struct frame_output and the two texts */
    FRAME_STRUCTURED = 'R',
    FRAME_TEXT = 'T',
    FRAME_IMAGE = 'I', /* type, NUL, base64 */
    FRAME_ERROR = 'E', /* struct err */
    FRAME_DONE = '.'
};
struct frame_output {
    long long pid, seq;
    size_t n_out;
};

/* In the process that serves: what starts programs needs the server, and one that is started from here is no
 * orphan, as that of a process of ours would be (server_start.c). */
void serve_have_server(const struct call *c);

_Noreturn void serve_work(struct call *c, int out);

#endif
