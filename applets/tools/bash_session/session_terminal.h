/* A session's terminal: what programs write to it, as plain text, and what is typed into it. It knows nothing
 * of shells and calls; what comes is told to its owner. */
#ifndef APPLETS_BASH_SESSION_SESSION_TERMINAL_H
#define APPLETS_BASH_SESSION_SESSION_TERMINAL_H

#include <stdbool.h>

#include "buf.h"
#include "err.h"
#include "loop.h"
#include "pty.h"
#include "session_attach.h"
#include "session_input.h"
#include "session_pace.h"
#include "session_tape.h"
#include "span.h"
#include "term_filter.h"

struct terminal_owner {
    /* How many of these bytes, as they were written, are at their front that are no output of anybody. */
    size_t (*skip)(const void *arg, const char *bytes, size_t n);
    void (*text)(void *arg, const char *text, size_t n);
    /* A sequence of number TERMINAL_NOTE (OSC), what stands behind the number; only where `notes` says so. */
    void (*note)(void *arg, const char *text);
};
#define TERMINAL_NOTE "\033]7771;"
#define TERMINAL_NOTE_MAX 8192

struct terminal {
    struct loop *loop;
    struct pace *pace;
    const struct terminal_owner *owner;
    void *arg; /* the owner's */
    struct pty pty;
    struct loop_source *source;
    struct term_filter filter;
    bool notes;         /* they are looked for */
    struct buf note;    /* the front of one */
    struct input input; /* what it has not taken yet */
    struct viewers viewers;
    struct tape *tape;      /* NULL: nobody wants one */
    struct buf tail;        /* the last that was printed */
    size_t tail_after_mark; /* bytes of it since terminal_mark */
    bool open_line;         /* since terminal_begin_answer something came, and its last line has no end */
};

/* Reads what it has whenever something comes, and lets the pace's `look` know. */
void terminal_watch(struct terminal *t);
/* Reads what it has; true when there was something. */
bool terminal_drain(struct terminal *t);
/* The same, and what looked like the front of an escape sequence. */
void terminal_drain_all(struct terminal *t);
/* The shell is about to prompt. */
void terminal_mark(struct terminal *t);
/* What comes from here on is an answer to what is typed now. */
void terminal_begin_answer(struct terminal *t);
/* What was shown in the last line since terminal_mark; no more than the tail holds. */
struct span terminal_last_line(const struct terminal *t);
/* The last that was printed ends with this. */
bool terminal_ends_with(const struct terminal *t, const char *text, size_t n);
/* Types for the session itself: at once. */
void terminal_type(struct terminal *t, const char *text, size_t n);
/* It makes no lines: a line editor, or another program that draws for itself, reads. */
bool terminal_is_raw(const struct terminal *t);
void terminal_close(struct terminal *t);

#endif
