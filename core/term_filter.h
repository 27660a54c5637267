/* From what a program writes to a terminal to plain text.
 *
 * Takes away escape sequences (ECMA-48: CSI, OSC, DCS, SOS, PM, APC, two- and three-byte ones, and screen's
 * title) and control characters but tab, newline and carriage return; makes the rest valid UTF-8 (bad bytes
 * become U+FFFD). Works on any cut of the stream: a sequence or character that a read cuts is completed by
 * the next. A sequence that never ends hides no more than the rest of its line. */
#ifndef CORE_TERM_FILTER_H
#define CORE_TERM_FILTER_H

#include <stdbool.h>
#include <stddef.h>

struct buf;

struct term_filter {
    int state;
    char held[4]; /* first bytes of a character */
    size_t n_held;
};

void term_filter_feed(struct term_filter *f, const char *s, size_t n, struct buf *out);

/* False: it is no filter that has come to be by what is above. */
bool term_filter_is_valid(const struct term_filter *f);

/* The stream begins anew: what is unfinished is given up (a cut character shows as U+FFFD). */
void term_filter_reset(struct term_filter *f, struct buf *out);

#endif
