/* One request to a target, by a conversation with the `exec --detect` that answers it there.
 *
 * It is sent once: where the runtime passes output on as it comes, when the other side has said that it is
 * there, and otherwise along with what goes before. From then on it may have begun, and whatever becomes of
 * the connection it isn't sent again. Our end of the runtime's stdin stays open until the answer has been
 * delivered: should we die, or give up, its end tells the other side, which then keeps the answer for the
 * next call. */
#ifndef INJECT_REQUEST_H
#define INJECT_REQUEST_H

#include "host/inject/transport.h"

struct inject_request {
    struct span text; /* one line of JSON, with its newline */
    /* Gets the answer, one line; true: it has reached whom it is for, and the other side may forget it. */
    bool (*deliver)(void *arg, struct span answer);
    void *deliver_arg;
    /* what became of it */
    bool sent, answered;
    bool withheld;          /* the runtime hands output over only when all has ended */
    enum transport_end how; /* where it was sent and not answered: how the call of the runtime ended, */
    int status;             /* with which exit status, */
    struct buf said;        /* and what it said */
    /* of the conversation */
    bool holds; /* the other side knows that stdin is held */
    /* in the output: where the answer may begin, the line there that comes next, and what was looked at */
    size_t begin, line, looked;
};

/* Puts the request into the call's input, there and behind: from now on it may begin. `streams`: the runtime
 * is known to pass output on as it comes; otherwise that shows, or stdin ends after impatient_ms. */
void inject_request_send(struct inject_request *q, bool streams, struct transport_call *c, int first);

/* The answer is the first line there in the output that is one. Goes on, as transport_call.answered. */
enum transport_step inject_request_step(struct inject_request *q, size_t begin, struct transport_call *c);

/* After the call: takes down how it ended. */
void inject_request_end(struct inject_request *q, enum transport_end how, const struct transport_call *c);

#endif
