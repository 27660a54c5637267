/* The command line of MCP servers. */
#include "mcp.h"

#include <string.h>

#include "mcp_serve/mcp_serve.h"

static const char NAME[] = "mcp";

static const char usage[] = "Usage: toolbox mcp serve\n"
                            "\n"
                            "MCP servers of this container, and this container as one.\n"
                            "\n"
                            "  serve   an MCP server on stdin and stdout that offers the container's tools\n"
                            "  --help  this text\n";

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
} commands[] = {
    {"serve", mcp_serve_main},
};
enum { N_COMMANDS = sizeof commands / sizeof *commands };

static int mcp_main(int argc, char **argv)
{
    const char *names[N_COMMANDS + 1] = {0};
    if (argc < 2)
        return usage_error(NAME, "a command is missing");
    for (size_t i = 0; i < N_COMMANDS; i++) {
        names[i] = commands[i].name;
        if (strcmp(argv[1], commands[i].name) == 0)
            return commands[i].run(argc - 1, argv + 1);
    }
    return usage_unknown(NAME, "command", argv[1], names);
}

const struct applet mcp_applet = {
    .name = NAME,
    .summary = "talk to MCP servers in this container, or be one",
    .usage = usage,
    .run = mcp_main,
};
