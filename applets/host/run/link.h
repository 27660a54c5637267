/* The host's end of byte streams (rpc/mux.h): over the connection that is kept for a target where there is
 * one, or over a call of the runtime of its own. */
#ifndef RUN_LINK_H
#define RUN_LINK_H

#include <stdbool.h>

#include "applet.h"
#include "host/inject/inject_types.h"
#include "host/inject/target.h"
#include "loop.h"
#include "mux.h"

struct link_options {
    struct inject_options inject;
    int persist_ms; /* of a connection that is to be kept; -1: none is; CONNECT_USUAL */
    bool alone;     /* none is used */
};

struct link_owner {
    struct mux_owner streams;
    /* It has ended, with all streams, which are closed first. */
    void (*ended)(void *arg, const char *why);
    void (*flushed)(void *arg); /* there is room again for what waited (link_is_full); may be NULL */
    void *arg;
};

struct link;

/* Finds or makes the connection; the target is made ready where it isn't. NULL, after a message for `applet`,
 * with *status. The loop begins after it: signals have their defaults. */
struct link *link_open(const char *applet, const struct link_options *how, const struct target *t,
                       int *status);
/* The one that is kept; NULL: there is none. */
struct link *link_kept(const struct link_options *how, const struct target *t);
/* Streams can be opened from then on. */
void link_begin(struct link *l, struct loop *loop, const struct link_owner *owner);
struct mux *link_mux(struct link *l);
/* Sends what there is to send. */
void link_flush(struct link *l);
/* More than this waits to be sent: nothing should be added. */
bool link_is_full(const struct link *l);
/* A runtime of its own has a moment to end. */
void link_close(struct link *l);

/* The words that all who use it take: LINK_OPTIONS beside INJECT_OPTIONS. EXIT_OK, or EXIT_USAGE, said. */
enum { LINK_OPT_PERSIST = 700, LINK_OPT_NO_SHARE };
#define LINK_OPTIONS                                                                                         \
    {"persist", 2, NULL, LINK_OPT_PERSIST},                                                                  \
    {                                                                                                        \
        "no-share", 0, NULL, LINK_OPT_NO_SHARE                                                               \
    }
#define LINK_OPTIONS_USAGE                                                                                   \
    "  --persist[=TIME] keep the connection, until it isn't used for so long (60 s)\n"                       \
    "  --no-share       neither keep one nor use one that is kept\n"
int link_option(struct link_options *how, const struct option *options, int option, const char *applet,
                const char *word);

#endif
