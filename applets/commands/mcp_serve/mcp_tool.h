/* A tool as an MCP client sees it, and the process that does one call of it.
 *
 * Everything about a tool is one entry of a table: what tools/list says of it, how its arguments are checked
 * (from the same fields as its input schema) and the function that does the work. That runs in a process of
 * its own, may take its time, and is killed when the call is cancelled. A new tool is a file with a function
 * and an entry in mcp_tools.c. */
#ifndef APPLETS_MCP_SERVE_MCP_TOOL_H
#define APPLETS_MCP_SERVE_MCP_TOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "buf.h"
#include "err.h"
#include "json.h"
#include "params.h"

/* The arguments of all tools together; each takes those that its fields name. One flat record, as the
 * arguments are in JSON: the fields find their places by offset, and many a name is that of several tools. */
struct args {
    struct text session, command, text, cwd, user, shell, term;
    struct text path, pattern, glob, content, encoding, mode, until, type;
    struct text file_text, old_str, new_str;
    struct text url, direction, value, key, expression, gone, format;
    struct texts argv, program, env, exclude;
    struct ints view_range;
    struct span points;
    double timeout;
    long long rows, cols; /* 0: not given */
    bool pty;
    long long timeout_s, max_bytes, job, offset, limit, depth, context, insert_line, element, tab;
    bool full_page, new_tab, idle;
    bool enter, close, open, hidden, literal, ignore_case, parents, ignores;
};

enum { UNBOUNDED = -1 };

/* An argument: a member of struct args, and what the input schema says of it. */
struct field {
    const char *key, *about;
    const char *words; /* "a|b|c": one of these; NULL: any */
    short type;        /* enum param_type */
    short offset;
    bool required;
    int min, max;  /* of numbers; both 0: no bounds; max UNBOUNDED: only min */
    int otherwise; /* of numbers and booleans, where the argument is absent; negative: a mark of that alone */
};

struct work;

enum { TOOL_READS = 1, TOOL_DESTROYS = 2, TOOL_IDEMPOTENT = 4, TOOL_OPEN_WORLD = 8 };

/* Which calls are done one after the other: none, those of each shell, those of the browser, those
 * of the desktop. */
enum { TURN_NONE, TURN_SHELL, TURN_BROWSER, TURN_COMPUTER };

struct mcp_tool {
    const char *name, *title, *description;
    const struct field *fields;
    unsigned char n_fields;
    unsigned char hints; /* TOOL_… */
    unsigned char turn;  /* TURN_… */
    /* The members of the structured result: "session:s exit_code:i? state:w(completed|exited) list:[path:s]":
     * s string, i integer, n number, b boolean, o any object, a anything, w one of some words, [] array of
     * objects (or, with one letter inside, of that); ? behind the type: or null; ? behind the name: may be
     * absent. */
    const char *result;
    int (*run)(struct work *w, struct err *err);
};

/* Ends with an entry without a name. */
extern const struct mcp_tool mcp_tools[];

/* The params table that a tool's fields mean, in `list` (room for n_fields), and the values of those that are
 * absent in *args. */
void mcp_tool_params(const struct mcp_tool *tool, struct param *list, struct args *args);

/* Whether a word is one of "a|b|c". */
bool mcp_word_is_of(const char *words, const char *word, size_t n);

/* ---- the work: what a run function gets and gives ---- */

struct job_notes;

struct work {
    struct args args;
    struct span arguments; /* the same, as they came: a checked object */
    const char *session;   /* what `args.session` or else the default means; NULL: there is none yet */
    const char *browser;   /* the browser session of this connection; NULL: there is none yet */
    const char *computer;  /* likewise the desktop's */
    const struct job_notes *jobs;
    pid_t serve;           /* the process that serves */
    bool keep;             /* sessions and jobs outlive it */
    int out;               /* to the process that serves */
    struct buf structured; /* the result: an object. On error (-1) it doesn't matter */
    struct buf text;       /* as text; empty: the object's JSON */
    struct buf image;      /* base64 */
    const char *image_type;
};

/* Around what makes something that has to be known of: until it has been told, a cancelled call goes on. */
void work_make_begin(void);
void work_make_end(void);

/* What else is told while the work goes on. */
void work_status(struct work *w, const char *fmt, ...)
    __attribute__((format(printf, 2, 3))); /* for progress */
void work_log(struct work *w, const char *level, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void work_made_session(struct work *w, const char *name, bool is_default);
void work_closed_session(struct work *w, const char *name);
/* The browser session of this connection from now on; "": none any more. */
void work_browser(struct work *w, const char *name);
void work_computer(struct work *w, const char *name); /* likewise the desktop's */
/* Opens one by that method, which ends with the connection, and has `keep` tell its name. */
int work_open_session(struct work *w, const char *method, void (*keep)(struct work *w, const char *name),
                      struct buf *name, struct err *err);
void work_made_job(struct work *w, long long pid);
/* The result tells what the job has printed up to now; `ended`: and that it has ended. */
void work_tells_job(struct work *w, long long pid, bool ended);

/* Output of a job that was taken from it up to `seq`: kept until an answer with it has gone out. */
void work_job_output(struct work *w, long long pid, long long seq, struct span out, struct span err);

/* What is kept of a job: NULL when nothing is known of it. */
struct job_note {
    struct job_note *next;
    long long pid, seq;
    struct buf out[2]; /* taken from the job, not told yet */
    unsigned long long omitted[2];
    bool ours; /* started by this server */
};
struct job_notes {
    struct job_note *first;
};
const struct job_note *work_job(const struct work *w, long long pid);
void job_note_add(struct job_note *note, int stream, struct span text);

#endif
