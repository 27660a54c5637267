/* policy: looks at a file that start-server or mcp serve is to be given. */
#ifndef TOOLBOX_GUEST
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "applet.h"
#include "confine_command.h"
#include "io.h"
#include "json.h"
#include "server_policy.h"
#include "tool.h"

static const char NAME[] = "policy";

/* What a policy doesn't hold as long as it doesn't say so; NULL: nothing of that kind. */
static const char *open_walls(void)
{
    const struct policy *c = &server_policy->walls.confine;
    return !c->preset.s && !c->write.list
               ? "without confine.preset or confine.write what is started may change this policy"
               : NULL;
}

static const char *open_files(void)
{
    return server_policy->directories.list
               ? NULL
               : "without directories the editor and the file methods reach all files";
}

static void put_found(struct buf *out, const char *const found[2])
{
    json_member_bool(out, "ok", true);
    json_key(out, "warnings");
    buf_addc(out, '[');
    for (int i = 0; i < 2; i++) {
        if (found[i] && i > 0 && found[0])
            buf_addc(out, ',');
        if (found[i])
            json_puts(out, found[i]);
    }
    buf_addc(out, ']');
}

static int tell(const char *file, bool json, const struct err *wrong)
{
    struct buf out BUF_AUTO = BUF_INIT;
    const char *const found[] = {wrong ? NULL : open_walls(), wrong ? NULL : open_files()};
    if (json) {
        buf_addc(&out, '{');
        if (wrong) {
            json_member_bool(&out, "ok", false);
            json_member_string(&out, "error", wrong->msg);
        } else {
            put_found(&out, found);
        }
        buf_addc(&out, '}');
        printf("%s\n", buf_str(&out));
    } else if (wrong) {
        return applet_failed(NAME, "%s", wrong->msg);
    } else {
        for (int i = 0; i < 2; i++)
            if (found[i])
                applet_failed(NAME, "warning: %s: %s", file, found[i]);
        printf("%s is a policy\n", file);
    }
    int printed = stdout_flushed();
    return wrong ? EXIT_FAILED : printed;
}

int policy_check(int argc, char **argv)
{
    static const char *const words[] = {"check", NULL};
    const char *names[METHODS_MAX], *file = NULL;
    struct err err;
    bool json = false;
    if (argc < 2 || strcmp(argv[1], "check") != 0)
        return argc < 2 ? usage_error(NAME, "a command is wanted: toolbox policy check FILE")
                        : usage_unknown(NAME, "command", argv[1], words);
    for (int i = 2; i < argc; i++) {
        bool option = strcmp(argv[i], "--json") == 0;
        if (!option && (file || (argv[i][0] == '-' && argv[i][1])))
            return file ? usage_error(NAME, "check takes one file: toolbox policy check FILE")
                        : usage_error(NAME, "unknown option '%s'", argv[i]);
        json = json || option;
        file = option ? file : argv[i];
    }
    if (!file)
        return usage_error(NAME, "check takes one file: toolbox policy check FILE");
    tool_method_names(names, METHODS_MAX);
    int wrong = server_policy_load(AT_FDCWD, file, names, &err);
    return tell(file, json, wrong < 0 ? &err : NULL);
}

#endif
