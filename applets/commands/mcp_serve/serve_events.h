/* What the requests of one POST are answered with, or what a GET listens to: one JSON text, or events that
 * are kept for a while, so that a client whose connection broke goes on behind the last that it has. */
#ifndef APPLETS_MCP_SERVE_SERVE_EVENTS_H
#define APPLETS_MCP_SERVE_SERVE_EVENTS_H

#include <stdbool.h>

#include "commands/model_proxy/proxy_http.h"
#include "json.h"

#define SSE_KEPT_MAX (8u << 20) /* bytes of events; the oldest go */
#define SSE_KEPT 32             /* streams of a session that have ended */
#define SSE_KEPT_MS 120000      /* after the end */
#define SSE_BEAT_MS 15000       /* a sign of life where nothing else is said for so long */

enum { SSE_HEADER_MISMATCH = -32020 }; /* the head of a request says other things than its body */

struct sse_event;

struct sse {
    struct sse *next;
    unsigned number;         /* of its session */
    struct proxy_conn *conn; /* NULL: nobody listens at the moment */
    bool listens;            /* of a GET: nothing that it would be for comes */
    bool primes;             /* begins with an event of no content, so that there is one to go on behind */
    bool begun;              /* events go out as they come */
    bool waits;              /* for all of it, which goes out as one JSON text */
    bool ended;
    bool done;   /* nobody can come for more of it */
    bool strict; /* statuses tell of errors, as since 2026-07-28 */
    struct {
        unsigned n; /* so far */
        size_t bytes;
        struct sse_event *first, **last;
    } events;
    long long since_ms; /* it has been said, or ended */
    const char *fields; /* of the head */
    struct {
        void (*gone)(struct sse *st, void *arg);
        void *arg;
    } owner;
};

/* To the front of a list. `gone` is told when its client goes before the end. */
struct sse *sse_new(struct sse **list, struct proxy_conn *conn, void (*gone)(struct sse *st, void *arg),
                    void *arg);
void sse_free(struct sse **list, struct sse *st);

/* serve_owner.said: kept, and passed on if it has begun. */
void sse_said(struct sse *st, struct span message, bool last);

/* Begins with what is behind the event of that number, or ends with it. */
void sse_begin(struct sse *st, unsigned after);
/* The same for another client, which comes in the place of the first. */
void sse_take_up(struct sse *st, struct proxy_conn *conn, unsigned after);
/* All of it in one, now or when it has come; nothing at all is status 202. */
void sse_answer(struct sse *st);
/* A sign of life, if it is time. */
void sse_beat(struct sse *st);
/* There is no more, and never was an answer. */
void sse_hang_up(struct sse *st);

#endif
