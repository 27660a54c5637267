/* A record of what was asked and answered: a line of JSON for each,
 *
 *   {"time", "ms", "request": {"method", "path", "body"}, "response": {"status", "type", "body"}}
 *
 * bodies as JSON where they are, else as strings. What is the same: method, path behind its version, and
 * body, in which neither white space nor the order of members counts, nor those that name a session or a user
 * (tape_names). */
#ifndef APPLETS_MODEL_PROXY_TAPE_H
#define APPLETS_MODEL_PROXY_TAPE_H

#include "err.h"
#include "span.h"

struct tape;

struct tape_answer {
    int status;
    char *type;       /* of the content */
    struct span body; /* JSON: as it is sent; or a string's text in `text` */
    struct buf text;
};

/* -1 with ERR_TOOL. */
struct tape *tape_load(const char *path, bool in_order, struct err *err);
void tape_free(struct tape *tape);

/* The answer to a request: of several the first that wasn't given yet, else the last. Where `in_order`, the
 * next one to that path, whatever was asked. False: there is none; *of_path says how many to that path. */
bool tape_find(struct tape *tape, const char *method, const char *path, struct span body,
               struct tape_answer *answer, size_t *of_path);
void tape_answer_release(struct tape_answer *answer);

/* Appends a line. */
void tape_line(struct buf *out, const char *method, const char *path, struct span body, long long ms,
               const struct tape_answer *answer);

#endif
