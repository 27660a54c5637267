/* policy: looks at a file that start-server or mcp serve is to be given. */
#ifndef TOOLBOX_GUEST
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "applet.h"
#include "confine_command.h"
#include "server_policy.h"
#include "tool.h"

static const char NAME[] = "policy";

/* What a policy doesn't hold as long as it doesn't say so. */
static void warn(const char *file)
{
    const struct policy *c = &server_policy->walls.confine;
    if (!c->preset.s && !c->write.list)
        applet_failed(
            NAME,
            "warning: %s: without confine.preset or confine.write what is started may change this policy",
            file);
    if (!server_policy->directories.list)
        applet_failed(
            NAME, "warning: %s: without directories the editor and the file methods reach all files", file);
}

int policy_check(int argc, char **argv)
{
    static const char *const words[] = {"check", NULL};
    const char *names[METHODS_MAX];
    struct err err;
    if (argc < 2 || strcmp(argv[1], "check") != 0)
        return argc < 2 ? usage_error(NAME, "a command is wanted: toolbox policy check FILE")
                        : usage_unknown(NAME, "command", argv[1], words);
    if (argc != 3)
        return usage_error(NAME, "check takes one file: toolbox policy check FILE");
    tool_method_names(names, METHODS_MAX);
    if (server_policy_load(AT_FDCWD, argv[2], names, &err) < 0)
        return applet_failed(NAME, "%s", err.msg);
    warn(argv[2]);
    printf("%s is a policy\n", argv[2]);
    return stdout_flushed();
}

#endif
