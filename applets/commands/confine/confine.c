#include "applet.h"
#include "confine_command.h"
#include "relocate.h"

enum { EXIT_NOT_CONFINED = 125 };

static int run(int argc, char **argv, const char *name, int (*command)(int argc, char **argv))
{
    struct err err;
    if (code_unpack(CODE_confine, &err) == 0)
        return command(argc, argv);
    applet_failed(name, "%s", err.msg);
    return EXIT_NOT_CONFINED;
}

static int confine_run(int argc, char **argv)
{
    return run(argc, argv, "confine", confine_command);
}

static int policy_run(int argc, char **argv)
{
    return run(argc, argv, "policy", policy_check);
}

extern const struct applet policy_applet;

const struct applet policy_applet = {
    .name = "policy",
    .summary = "check the policy of a server",
    .run = policy_run,
};

extern const struct applet confine_applet;

const struct applet confine_applet = {
    .name = "confine",
    .summary = "run a command that can do no more than is said",
    .run = confine_run,
};
