/* toolbox itself as an MCP server on stdio. */
#ifndef APPLETS_MCP_SERVE_MCP_SERVE_H
#define APPLETS_MCP_SERVE_MCP_SERVE_H

/* `toolbox mcp serve`: argv[0] is "serve"; returns the exit status. */
int mcp_serve_main(int argc, char **argv);

#endif
