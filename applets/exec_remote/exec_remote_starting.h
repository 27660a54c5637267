/* A new job on its way from the server to its keeper. */
#ifndef APPLETS_EXEC_REMOTE_EXEC_REMOTE_STARTING_H
#define APPLETS_EXEC_REMOTE_EXEC_REMOTE_STARTING_H

#include "exec_remote_types.h"
#include "keeper.h"
#include "rpc.h"
#include "user.h"

/* In the keeper, which is a copy of the server, it is read as it stands here. */
struct starting {
    struct rpc_call *call; /* NULL: the client has gone */
    struct start_params params;
    struct user user;
    bool as_user;
};

/* Runs in the keeper (keeper_start_fn): arg is the struct starting. Its word is the pid. */
int job_start_in_keeper(struct keeper *k, void *arg, struct err *err);

/* The methods that a job's keeper answers. */
extern const struct rpc_method job_keeper_methods[];
extern const struct moving job_moving;

#endif
