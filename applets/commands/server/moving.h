/* How a keeper moves to another build: the process stays what it is, parent of its children and owner of its
 * descriptors, and executes the other build's program, which goes on from a record of its state
 * (handover.h).
 *
 * Nothing is given up before the other program has read a record of this very state in a process of its own
 * and said that it can go on from it; and should it then not be able to, it executes the program that was
 * there before. Clients whose requests were not read are turned away: theirs is the same request again, by
 * way of their own build's server. */
#ifndef APPLETS_SERVER_MOVING_H
#define APPLETS_SERVER_MOVING_H

#include "handover.h"
#include "server.h"

struct moving {
    const char *kind;
    int number; /* of the record's form: a change of what is in it, or of what it means, is another number */

    /* In the keeper that is to move. -1 with ERR_TOOL: not as it is now. */
    int (*save)(void *ctx, struct handover_out *out, struct err *err);
    /* Answers the calls that wait, with what there is. */
    void (*answer_waiting)(void *ctx);

    /* In the other program: checks all of the record, and where k isn't NULL goes on from it: serves the
     * keeper's socket. -1 with ERR_TOOL, and nothing done. */
    int (*take)(struct keeper *k, const struct handover *h, struct err *err);
};

/* A keeper method, with a path and a sha256: answers true when the move has begun. */
#define KEEPER_MOVE "toolbox_keeper_move"
void keeper_move(struct rpc_call *call, struct span params, void *ctx);

/* Moves everything of other builds that can be moved to this one. `out` gets an array of {name, build, moved,
 * reason}. -1 with ERR_TOOL when it could not be tried at all. */
int upgrade_all(struct buf *out, struct err *err);

#endif
