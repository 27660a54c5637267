/* `toolbox mcp serve --in TARGET`: an MCP server for a target, from outside. */
#ifndef CALL_SERVE_IN_H
#define CALL_SERVE_IN_H

/* The arguments of `mcp serve`, --in among them. Makes the target ready, and then is the runtime's call that
 * runs `mcp serve` there; returns an exit status where it comes to neither. */
int serve_in(int argc, char **argv);

/* Whether those arguments would do, also where the target is a pattern: EXIT_OK, or EXIT_USAGE and a message.
 */
int serve_in_check(int argc, char **argv);

#endif
