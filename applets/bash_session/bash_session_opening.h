/* A new session on its way from the server to its keeper. */
#ifndef APPLETS_BASH_SESSION_BASH_SESSION_OPENING_H
#define APPLETS_BASH_SESSION_BASH_SESSION_OPENING_H

#include "bash_session_types.h"
#include "ipc.h"
#include "keeper.h"
#include "rpc.h"
#include "user.h"

struct server;

/* A new session on its way. In the keeper, which is a copy of the server, it is read as it stands here. */
struct opening {
    struct rpc_call *call; /* NULL: the client has gone */
    struct server *server;
    struct new_session_params params;
    struct user user;
    bool as_user; /* otherwise the server's own */
    char name[IPC_NAME_MAX];
};

/* Runs in the keeper (keeper_start_fn): arg is the struct opening. */
int session_start_in_keeper(struct keeper *k, void *arg, struct err *err);

/* The methods that a session's keeper answers. */
extern const struct rpc_method session_keeper_methods[];
extern const struct moving session_moving;

#endif
