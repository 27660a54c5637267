/* The process that serves in a target, a child of ours (`mcp serve --in TARGET`): lines to it, lines from it,
 * its end. */
#ifndef APPLETS_MCP_SERVE_RELAY_CHILD_H
#define APPLETS_MCP_SERVE_RELAY_CHILD_H

#include <sys/types.h>

#include "buf.h"
#include "err.h"
#include "fifo.h"
#include "loop.h"
#include "span.h"

struct serve_far;

struct relay_child_owner {
    void (*took)(void *arg, struct span line);
    void (*ended)(void *arg); /* and all that it has said was taken */
    void *arg;
};

struct relay_child {
    struct loop *loop;
    struct relay_child_owner owner;
    pid_t pid; /* 0: it has ended */
    int in, out, errors;
    struct loop_source *writer, *reader, *hearer, *ended, *leaving;
    struct fifo waiting;
    struct buf line, said;
};

/* 0, or -1 with err; it is to be released in either case. */
int relay_child_start(struct relay_child *c, struct loop *loop, const struct serve_far *far,
                      const char *target, const struct relay_child_owner *owner, struct err *err);
void relay_child_release(struct relay_child *c);

/* A message as one line. */
void relay_child_send(struct relay_child *c, struct span message);

/* Nothing more is sent: it is to end soon, or is killed. */
void relay_child_leave(struct relay_child *c);

/* That it has ended, with what it has said on stderr. */
void relay_child_why(const struct relay_child *c, struct err *err);

#endif
