/* The keeper of a session. */
#ifndef APPLETS_BASH_SESSION_BASH_SESSION_KEEPER_H
#define APPLETS_BASH_SESSION_BASH_SESSION_KEEPER_H

#include "keeper.h"
#include "rpc.h"

/* Runs in the keeper (keeper_start_fn): arg is a struct starting with struct new_session_params. Its word is
 * the shell's path. */
int session_start_in_keeper(struct keeper *k, void *arg, struct err *err);

/* The methods that a session's keeper answers. */
extern const struct rpc_method session_keeper_methods[];
extern const struct moving session_moving;

#endif
