/* `toolbox inject` and `toolbox eject`, and what they share with `toolbox call` and `toolbox mcp serve --in`.
 */
#ifndef INJECT_H
#define INJECT_H

#include <getopt.h>

#include "applet.h"
#include "host/inject/inject_types.h"

extern const struct applet inject_applet, eject_applet;

/* ---- options that all of them have ---- */

enum {
    OPT_DIR = 256,
    OPT_NAME,
    OPT_LINKS,
    OPT_USER,
    OPT_RUNTIME,
    OPT_ROOT_EXEC,
    OPT_TIMEOUT,
    OPT_JSON,
    OPT_WITH,
    OPT_REPLACE,
    OPT_UPGRADE
};

#define INJECT_OPTIONS                                                                                       \
    {"dir", 1, NULL, OPT_DIR}, {"name", 1, NULL, OPT_NAME}, {"user", 1, NULL, OPT_USER},                     \
        {"runtime", 1, NULL, OPT_RUNTIME}, {"root-exec", 1, NULL, OPT_ROOT_EXEC},                            \
    {                                                                                                        \
        "timeout", 1, NULL, OPT_TIMEOUT                                                                      \
    }

void inject_options_init(struct inject_options *o);
/* Takes one of INJECT_OPTIONS, or OPT_LINKS or OPT_JSON, that getopt_long has found as `word`, with optarg;
 * or says of another what may have been meant of those that the applet takes. EXIT_OK, or EXIT_USAGE after a
 * message. */
int inject_option(struct inject_options *o, const struct option *options, int option, const char *applet,
                  const char *word);

/* Takes the value of -j. As above. */
int inject_jobs(struct inject_options *o, const char *value, const char *applet);

/* Reads one target in which something is to run. EXIT_OK, or EXIT_USAGE after a message. */
int inject_running_target(struct target *t, const char *text, const struct inject_options *o,
                          const char *applet);

#endif
