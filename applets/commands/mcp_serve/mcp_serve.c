#include "mcp_serve.h"

#include <string.h>

#include "applet.h"
#include "host/call/serve_in.h"
#include "relocate.h"
#include "serve_words.h"

#ifndef TOOLBOX_GUEST
static bool has_option(int argc, char **argv, const char *name)
{
    size_t n = strlen(name);
    for (int i = 1; i < argc; i++)
        if (strncmp(argv[i], name, n) == 0 && (!argv[i][n] || argv[i][n] == '='))
            return true;
    return false;
}
#endif

int mcp_serve_main(int argc, char **argv)
{
    struct err err;
    bool elsewhere = false;
    if (code_unpack(CODE_mcp, &err) < 0)
        return applet_failed("mcp serve", "%s", err.msg);
#ifndef TOOLBOX_GUEST /* it is the one that is served in */
    elsewhere = has_option(argc, argv, "--in");
    if (elsewhere && !has_option(argc, argv, "--http"))
        return serve_in(argc, argv);
#endif
    return serve_words(argc, argv, elsewhere);
}
