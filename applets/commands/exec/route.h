/* Sending a request to the process that owns the matter. */
#ifndef APPLETS_EXEC_ROUTE_H
#define APPLETS_EXEC_ROUTE_H

#include <stdbool.h>

#include "buf.h"
#include "err.h"
#include "json.h"

/* The answer, and the connection it came over (-1: answered in this process), which counts as delivered only
 * once route_end says so. */
struct answer {
    struct buf line; /* one JSON value without newline; len 0: there is nothing to say to a notification */
    struct span id;  /* of the request, in its text */
    int fd;
    /* With which arguments the program of another build takes this process over, to answer for what runs in
     * it; NULL: the server has that done. */
    char *const *hand_over;
};
#define ANSWER_INIT                                                                                          \
    {                                                                                                        \
        .line = BUF_INIT, .fd = -1                                                                           \
    }

struct method;

/* A connection to the keeper that a call is for, when it lives; -1: whatever is to be said about it, the
 * server says. */
int route_keeper(const struct method *m, struct span params);
/* Whether it only looks: where the server died before it answered, another one is asked. */
bool route_is_query(const struct method *m, const char *name);
/* Fills the answer to a call whose process has ended under it. */
void route_ended(struct buf *line, struct span id, const struct err *why);

/* What isn't a valid request of a known method is answered here, as what is in-process; nothing starts the
 * server for it. Everything else goes to the server, which is started where none runs, or to the keeper. -1:
 * no answer could be had. */
int route(struct answer *a, struct span request, struct err *err);
void route_end(struct answer *a, bool delivered);

/* One call by method and params (JSON text), for the command lines of the tools: the result's JSON text in
 * *result. -1 with the error it was answered with. */
int call_method(const char *method, struct span params, struct buf *result, struct err *err);

#endif
