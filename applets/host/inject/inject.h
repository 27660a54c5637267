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

#define INJECT_OPTIONS_USAGE                                                                                 \
    "  --dir DIR        the directory for it (by default the first that will do)\n"                          \
    "  --name NAME      its name there (toolbox)\n"                                                          \
    "  --user USER      as whom; 'default': as whom the target runs things (by\n"                            \
    "                   default root, and where that can't be had as with 'default')\n"                      \
    "  --runtime WORDS  what stands for docker, kubectl, ssh …: 'sudo docker',\n"                          \
    "                   'kubectl --kubeconfig F', 'ssh -p 2222'\n"                                           \
    "  --root-exec PREFIX  of exec: targets, what runs things as root\n"                                     \
    "  --timeout TIME   for each call of the runtime: 60 (seconds), 500ms, 2m (60)\n"

#define INJECT_CONTAINER_USAGE                                                                               \
    "A target is one of\n"                                                                                   \
    "  docker:NAME, podman:NAME, nerdctl:NAME   a running container\n"

#define INJECT_MACHINE_USAGE                                                                                 \
    "  k8s:[CONTEXT/][NAMESPACE/]POD[/CONTAINER]\n"                                                          \
    "              two parts are NAMESPACE/POD, three NAMESPACE/POD/CONTAINER;\n"                            \
    "              a part may be empty\n"                                                                    \
    "  ssh:[USER@]HOST                          by keys or an agent\n"                                       \
    "  local:                                   this machine\n"                                              \
    "  'exec:COMMAND PREFIX'                    whatever runs what follows it there,\n"                      \
    "                                           with its stdin and stdout\n"

/* Those in which something can be run, one at a time; and all. */
#define INJECT_RUNNING_USAGE INJECT_CONTAINER_USAGE INJECT_MACHINE_USAGE
#define INJECT_TARGETS_USAGE                                                                                 \
    INJECT_CONTAINER_USAGE                                                                                   \
    "  compose:PROJECT/SERVICE                  a service's containers\n" INJECT_MACHINE_USAGE               \
    "  dir:ROOT                                 a mounted root file system\n"

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
