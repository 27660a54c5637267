#include "applet.h"
#include "confine_command.h"
#include "relocate.h"

enum { EXIT_NOT_CONFINED = 125 };

static int confine_run(int argc, char **argv)
{
    struct err err;
    if (code_unpack(CODE_confine, &err) == 0)
        return confine_command(argc, argv);
    applet_failed("confine", "%s", err.msg);
    return EXIT_NOT_CONFINED;
}

extern const struct applet confine_applet;

const struct applet confine_applet = {
    .name = "confine",
    .summary = "run a command that can do no more than is said",
    .run = confine_run,
};
