/* A display in its keeper: what is asked of it becomes tasks, one after the other. */
#ifndef APPLETS_COMPUTER_HOSTED_H
#define APPLETS_COMPUTER_HOSTED_H

#include "keeper.h"
#include "rpc.h"

/* As computer_start_in_keeper, once the code is there. */
int hosted_start(struct keeper *k, void *arg, struct err *err);

/* Handlers of methods. */
void hosted_act(struct rpc_call *call, struct span params, void *ctx);
void hosted_screenshot(struct rpc_call *call, struct span params, void *ctx);
void hosted_wait(struct rpc_call *call, struct span params, void *ctx);
void hosted_close(struct rpc_call *call, struct span params, void *ctx);

#endif
