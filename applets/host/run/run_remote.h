/* One program in a target as if it ran here: our stdin, stdout and stderr, signals, terminal, its status. */
#ifndef RUN_REMOTE_H
#define RUN_REMOTE_H

#include <stdbool.h>

#include "host/run/link.h"

struct run_request {
    char *const *argv; /* ends with NULL */
    bool self;         /* argv[0] is left out: it is this program itself, there */
    char *const *env;  /* NAME=VALUE; NULL: none */
    const char *cwd, *user;
    double timeout_s; /* < 0: none */
    bool input, terminal;
};

/* Runs it over the link, which is closed then. The exit status: the program's; 124 its time was over, 125 it
 * could not be run, or the connection has ended, 126 and 127 as of a shell, after a message for `applet`. */
int run_remote(const char *applet, const char *target, const struct run_request *request, struct link *link);

#endif
