/* The keeper of a display. */
#ifndef APPLETS_COMPUTER_COMPUTER_KEEPER_H
#define APPLETS_COMPUTER_COMPUTER_KEEPER_H

#include "keeper.h"
#include "rpc.h"

/* Runs in the keeper (keeper_start_fn): arg is a struct starting. */
int computer_start_in_keeper(struct keeper *k, void *arg, struct err *err);

/* The methods that it answers. */
extern const struct rpc_method computer_keeper_methods[];

#endif
