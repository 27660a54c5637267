/* What the command line of `mcp serve` says, done. */
#ifndef APPLETS_MCP_SERVE_SERVE_WORDS_H
#define APPLETS_MCP_SERVE_SERVE_WORDS_H

#include <stdbool.h>

/* argv[0] is "serve". `elsewhere`: there is --in, and --http. An exit status. */
int serve_words(int argc, char **argv, bool elsewhere);

#endif
