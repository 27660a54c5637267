/* A new session on its way from the server to its keeper. */
#ifndef APPLETS_WEB_BROWSER_WEB_STARTING_H
#define APPLETS_WEB_BROWSER_WEB_STARTING_H

#include "keeper.h"
#include "rpc.h"
#include "user.h"
#include "web_types.h"

/* In the keeper, which is a copy of the server, it is read as it stands here. */
struct web_starting {
    struct rpc_call *call; /* NULL: the client has gone */
    struct web_session_params params;
    struct user user;
    bool as_user;
    char name[IPC_NAME_MAX];
};

/* Runs in the keeper (keeper_start_fn): arg is the struct web_starting. */
int web_start_in_keeper(struct keeper *k, void *arg, struct err *err);

/* The methods that a session's keeper answers. */
extern const struct rpc_method web_keeper_methods[];

#endif
