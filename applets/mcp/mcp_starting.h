/* A new MCP server on its way from the server to its keeper. */
#ifndef APPLETS_MCP_MCP_STARTING_H
#define APPLETS_MCP_MCP_STARTING_H

#include "keeper.h"
#include "mcp_types.h"
#include "rpc.h"
#include "user.h"

/* In the keeper, which is a copy of the server, it is read as it stands here. */
struct mcp_starting {
    struct rpc_call *call; /* NULL: the client has gone */
    struct mcp_launch_params params;
    struct user user;
    bool as_user;
    long long session_id;
};

/* Runs in the keeper (keeper_start_fn): arg is the struct mcp_starting. */
int mcp_start_in_keeper(struct keeper *k, void *arg, struct err *err);

/* The methods that a server's keeper answers. */
extern const struct rpc_method mcp_keeper_methods[];

#endif
