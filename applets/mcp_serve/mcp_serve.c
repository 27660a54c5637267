#include "mcp_serve.h"

#include "applet.h"

int mcp_serve_main(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return applet_failed("mcp", "serve is not there yet");
}
