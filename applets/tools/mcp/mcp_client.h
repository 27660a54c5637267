/* An MCP server as its client sees it, for the command line: through the methods of the bridge. */
#ifndef APPLETS_MCP_MCP_CLIENT_H
#define APPLETS_MCP_MCP_CLIENT_H

#include <stdbool.h>

#include "buf.h"
#include "err.h"
#include "json.h"

struct mcp_client {
    const char *session; /* its number, as text */
    bool stateless;      /* it knows no handshake: each request says who asks */
    unsigned long requests;
};

/* Makes the handshake, unless somebody has made it before. -1 with what the server, or the bridge, says. */
int mcp_client_begin(struct mcp_client *c, struct err *err);

/* One request; `params` is the text of an object. The result's text in *result. */
int mcp_client_ask(struct mcp_client *c, const char *method, struct span params, struct buf *result,
                   struct err *err);

/* All tools that it has, as an array. */
int mcp_client_tools(struct mcp_client *c, struct buf *tools, struct err *err);

#endif
