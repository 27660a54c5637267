/* A recording of a terminal in a file, as asciinema plays it (asciicast, version 2 or 3).
 *
 * Events are written in pieces, so that up to a quarter of a second of it is lost with a process that is
 * killed. Where the file would pass its bound it becomes FILE.1, in the place of what had that name, and a
 * new one begins. What can't be written ends it: the terminal itself goes on. */
#ifndef APPLETS_BASH_SESSION_SESSION_RECORD_H
#define APPLETS_BASH_SESSION_SESSION_RECORD_H

#include <stddef.h>

#include "err.h"
#include "loop.h"

enum { RECORD_VERSION = 2, RECORD_MAX = 64 << 20, RECORD_MAX_LEAST = 65536 };

struct record_options {
    const char *path; /* absolute, of no file that there is */
    int version;
    long long max;                    /* bytes */
    const char *title, *shell, *term; /* for its head */
    unsigned short rows, cols;        /* at its beginning */
};

struct recording;

struct recording *recording_start(struct loop *loop, const struct record_options *options, struct err *err);
/* `event` is what stands behind its time, with the line's end. */
void recording_add(struct recording *r, long long now_us, const char *event, size_t n);
void recording_size(struct recording *r, unsigned short rows, unsigned short cols);
const char *recording_path(const struct recording *r);
/* Why it has ended before its time; NULL: it hasn't. */
const char *recording_failure(const struct recording *r);
/* Writes what there is. */
void recording_flush(struct recording *r);
void recording_end(struct recording *r);

#endif
