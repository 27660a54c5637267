/* What a session has printed and nobody has got yet; and what one run prints. */
#ifndef APPLETS_BASH_SESSION_SESSION_OUTPUT_H
#define APPLETS_BASH_SESSION_SESSION_OUTPUT_H

#include <stdbool.h>

#include "buf.h"
#include "memory_share.h"

/* ---- the stream that reads get ---- */

/* Plain text (term_filter), the newest SESSION_OUTPUT_MAX bytes of it. An answer takes all that is there; the
 * bytes stay until it is known to have arrived. */
struct output {
    struct buf text;
    struct memory_share share;            /* may be less than SESSION_OUTPUT_MAX */
    unsigned long long omitted;           /* bytes dropped from the front and not told of yet */
    size_t in_flight;                     /* bytes of text that an answer on its way holds */
    unsigned long long omitted_in_flight; /* of omitted, what that answer tells of */
    unsigned long long lost_in_flight;    /* bytes of that answer that had to be dropped here meanwhile */
    size_t untold_in_flight; /* bytes that it leaves out without room to say so: the next one says it */
    size_t after_mark;       /* bytes at the end of text that came since the shell was about to prompt */
    bool marked;             /* the prompt went, or will go, here */
};

void output_add(struct output *o, const char *s, size_t n);
/* Where it ends with two line ends, one goes. */
void output_join_ends(struct output *o);
/* The shell is about to prompt. */
void output_mark(struct output *o);
/* The prompt goes elsewhere. */
void output_forget_mark(struct output *o);
/* Drops the prompt that a command takes the place of; `prompt` as it showed last (n 0: not known), so that
 * nothing else that came behind the mark goes with it. */
void output_drop_prompt(struct output *o, const char *prompt, size_t n);
/* Puts text in front of what is there: an answer that did not arrive. */
void output_put_back(struct output *o, const char *s, size_t n);

/* Appends the answer to out: at most max bytes, the newest, behind a line that says how many bytes are left
 * out. */
void output_answer(struct output *o, size_t max, struct buf *out);
void output_delivered(struct output *o, bool delivered);
void output_release(struct output *o);

/* ---- one run ---- */

/* Head and tail of what a command prints, half of max each, or of the share of the memory. Text behind a mark
 * (the shell was about to prompt) is kept apart: it is the prompt if nothing follows it. */
struct capture {
    size_t max;
    struct memory_share share; /* may be less */
    struct buf head, tail, after;
    unsigned long long omitted, omitted_before; /* the latter in text that says so itself */
    bool marked;
};

struct capture *capture_new(size_t max);
void capture_add(struct capture *c, const char *s, size_t n);
void capture_mark(struct capture *c);
/* What lies behind the mark was output after all. */
void capture_commit(struct capture *c);
/* Takes away what a key of the line editor prints behind the mark that runs code from the channel `path`: a
 * line end, and with `set -x` a line that traces it. */
void capture_drop_key(struct capture *c, const char *path);
/* Takes `text` away where the output ends with it. */
void capture_strip(struct capture *c, const char *text, size_t n);
/* Where the output ends with `text`, that is marked: it may be none. */
void capture_hold(struct capture *c, const char *text, size_t n);
/* Appends the text to out, with a line where something is left out. */
void capture_text(const struct capture *c, struct buf *out);
/* The text has been given: what comes now is the rest. What lies behind the mark stays. */
void capture_drop_text(struct capture *c);
/* It was not, and is again in front of what has come since. */
void capture_put_front(struct capture *c, const char *s, size_t n, unsigned long long omitted);
/* For somebody who wants more or less of it. */
void capture_resize(struct capture *c, size_t max);
/* Bytes that the text leaves out. */
unsigned long long capture_omitted(const struct capture *c);
void capture_free(struct capture *c);

#endif
