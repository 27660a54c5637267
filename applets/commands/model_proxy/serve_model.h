/* What `toolbox model_proxy` is on a host: answers that come from a real provider (--to), a program
 * (--to-exec) or a record (--replay) instead of a service's files, and rules for who asks. None of it is in
 * what is placed into containers by others. */
#ifndef APPLETS_MODEL_PROXY_SERVE_MODEL_H
#define APPLETS_MODEL_PROXY_SERVE_MODEL_H

#include <getopt.h>

#include "applet.h"
#include "proxy_calls.h"

enum serve_option {
    SERVE_TO = 256,
    SERVE_TO_EXEC,
    SERVE_KEY_ENV,
    SERVE_KEY_FILE,
    SERVE_RECORD,
    SERVE_REPLAY,
    SERVE_MATCH,
    SERVE_MODEL,
    SERVE_SET,
    SERVE_UNSET,
    SERVE_BUDGET,
    SERVE_RATE,
    SERVE_CONCURRENCY,
};

#define SERVE_OPTION_NAMES                                                                                   \
    "--to", "--to-exec", "--key-env", "--key-file", "--record", "--replay", "--match", "--model", "--set",   \
        "--unset", "--budget", "--rate", "--concurrency",
#define SERVE_OPTION(name, option) {name, required_argument, NULL, option},
#define SERVE_OPTIONS                                                                                        \
    SERVE_OPTION("to", SERVE_TO)                                                                             \
    SERVE_OPTION("to-exec", SERVE_TO_EXEC)                                                                   \
    SERVE_OPTION("key-env", SERVE_KEY_ENV)                                                                   \
    SERVE_OPTION("key-file", SERVE_KEY_FILE)                                                                 \
    SERVE_OPTION("record", SERVE_RECORD)                                                                     \
    SERVE_OPTION("replay", SERVE_REPLAY)                                                                     \
    SERVE_OPTION("match", SERVE_MATCH)                                                                       \
    SERVE_OPTION("model", SERVE_MODEL)                                                                       \
    SERVE_OPTION("set", SERVE_SET)                                                                           \
    SERVE_OPTION("unset", SERVE_UNSET)                                                                       \
    SERVE_OPTION("budget", SERVE_BUDGET)                                                                     \
    SERVE_OPTION("rate", SERVE_RATE)                                                                         \
    SERVE_OPTION("concurrency", SERVE_CONCURRENCY)

/* Takes an option's value. EXIT_OK, or EXIT_USAGE where it makes no sense, which was said. */
int serve_model_option(enum serve_option option, const char *value);

/* Opens files, reads keys, and takes its place in the proxy, whose loop is there. *answers: nobody else has
 * to. EXIT_OK, or the exit status, said. */
int serve_model_begin(struct proxy *proxy, bool *answers);
void serve_model_end(void);

#endif
