/* The keeper of a job. */
#ifndef APPLETS_EXEC_REMOTE_EXEC_REMOTE_KEEPER_H
#define APPLETS_EXEC_REMOTE_EXEC_REMOTE_KEEPER_H

#include "keeper.h"
#include "rpc.h"

/* Runs in the keeper (keeper_start_fn): arg is a struct starting with struct start_params. Its word is the
 * pid. */
int job_start_in_keeper(struct keeper *k, void *arg, struct err *err);

/* The methods that a job's keeper answers. */
extern const struct rpc_method job_keeper_methods[];
extern const struct moving job_moving;

#endif
