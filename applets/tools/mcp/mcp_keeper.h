/* The keeper of an MCP server. */
#ifndef APPLETS_MCP_MCP_KEEPER_H
#define APPLETS_MCP_MCP_KEEPER_H

#include "keeper.h"
#include "rpc.h"

/* The number in a keeper's name. */
long long mcp_session_of(const char *owner);

/* Runs in the keeper (keeper_start_fn): arg is a struct starting with struct mcp_launch_params. */
int mcp_start_in_keeper(struct keeper *k, void *arg, struct err *err);

/* The methods that a server's keeper answers. */
extern const struct rpc_method mcp_keeper_methods[];

#endif
