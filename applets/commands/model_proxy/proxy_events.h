/* What a streamed answer consists of, made as it is sent.
 *
 * A stream says most things two or three times: in pieces, then whole. So it is no text but a plan for one:
 * text of its own, stretches of the model's answer (not copied), and runs, which are one event said again and
 * again with the next piece of a string. A client that reads slowly costs the answer and the plan, whatever
 * the stream comes to. */
#ifndef APPLETS_MODEL_PROXY_PROXY_EVENTS_H
#define APPLETS_MODEL_PROXY_PROXY_EVENTS_H

#include <stdbool.h>

#include "buf.h"
#include "json.h"

/* In text of a plan: here the next number of the sequence goes; in that of a run: here the piece goes. No
 * byte of JSON or of an event is one of these. */
#define EVENTS_NUMBER "\002"
#define EVENTS_PIECE "\001"

struct events {
    struct buf answer; /* what spans point into, compact JSON; owned */
    struct buf text;   /* appended to by who makes the plan */
    struct buf copies; /* of strings that the answer doesn't have */
    struct events_part *parts;
    size_t n, cap;

    /* Where it has been made up to. */
    size_t at_part, at_text, at_span;
    unsigned long long number; /* the next one */
};

void events_init(struct events *e);
void events_release(struct events *e);

/* Appends a stretch of e->answer, or of something else that outlives the plan. */
void events_put(struct events *e, struct span span);

/* Appends a run: the text that was appended since `from` (a length of e->text) is said once for each piece of
 * `string`, the checked text of a JSON string with its quotes; not at all for the empty one. */
void events_run(struct events *e, size_t from, struct span string);
void events_run_copy(struct events *e, size_t from, struct span string); /* of one that goes */

/* Makes some more of the stream: appends about `want` bytes to out. False when there was nothing left. */
bool events_next(struct events *e, struct buf *out, size_t want);

/* Appends a copy of an object with other members: those of `members` (the text of members, without braces)
 * in the place of the ones of these names (NULL at the end). */
void events_put_object(struct events *e, struct span object, const char *const *names, const char *members);

#endif
