/* `toolbox mcp serve --in TARGET`: an MCP server for a target, from outside. */
#ifndef CALL_SERVE_IN_H
#define CALL_SERVE_IN_H

/* The arguments of `mcp serve`, --in among them. Makes the target ready, and then is the runtime's call that
 * runs `mcp serve` there; returns an exit status where it comes to neither. */
int serve_in(int argc, char **argv);

#endif
