/* What MCP servers say, as text for people. */
#ifndef APPLETS_MCP_MCP_PRINT_H
#define APPLETS_MCP_MCP_PRINT_H

#include <stdbool.h>

#include "json.h"

/* An array of tools: for each its name and the first line of its description, and a line for each argument.
 */
void mcp_print_tools(struct span tools, struct buf *out);

/* The result of a tool's call: its text as it is, and of everything else what it is. True when the tool says
 * that it has failed. */
bool mcp_print_result(struct span result, struct buf *out);

#endif
