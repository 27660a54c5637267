/* MCP servers of the container: programs that speak JSON-RPC on their stdin and stdout. */
#ifndef APPLETS_MCP_MCP_H
#define APPLETS_MCP_MCP_H

#include "applet.h"
#include "tool.h"

extern const struct tool mcp_tool;
extern const struct applet mcp_applet;

#endif
