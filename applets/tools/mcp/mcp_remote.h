/* An MCP server that is reached by an url, as one that speaks on stdin and stdout. */
#ifndef APPLETS_MCP_MCP_REMOTE_H
#define APPLETS_MCP_MCP_REMOTE_H

#include "err.h"

#define MCP_REMOTE_HEADERS "TOOLBOX_MCP_HEADERS" /* variable: more lines of the head, "Name: value" each */

/* Passes messages on between stdin and stdout and the server, until the end of the input. `headers`: "Name:
 * value" each, NULL at the end. 0, or -1 with ERR_TOOL where it never came to anything, or ERR_PARAMS. */
int mcp_remote(const char *url, const char *const *headers, struct err *err);

#endif
