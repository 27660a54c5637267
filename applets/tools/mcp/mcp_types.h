/* Params of the MCP methods, as plain structs. Strings are owned by params_release. */
#ifndef APPLETS_MCP_MCP_TYPES_H
#define APPLETS_MCP_MCP_TYPES_H

#include "params.h"
#include "user_param.h"
#include "commands/confine/walls.h"

#define MCP_PREFIX "Mcp" /* a server's keeper listens as Mcp (session 0) or Mcp_SESSION */

struct mcp_launch_params {
    struct text command, url, cwd, encoding, encoding_error_handler;
    struct texts args, env, headers;
    struct user_param user;
    long long ends_with; /* a pid; 0: none */
    struct walls_params walls;
};
#define MCP_LAUNCH_DEFAULTS                                                                                  \
    {                                                                                                        \
        .walls = WALLS_DEFAULTS                                                                              \
    }

/* Of every method of a server; each takes those that its table names. */
struct mcp_session_params {
    long long session_id;
    struct span request, notification, response;
    long long max; /* < 0: all */
    long long cursor;
    double timeout; /* seconds; < 0: none */
};
#define MCP_SESSION_DEFAULTS                                                                                 \
    {                                                                                                        \
        .max = -1, .timeout = -1                                                                             \
    }

#endif
