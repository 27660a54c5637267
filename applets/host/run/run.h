/* `toolbox run` and `toolbox shell`. */
#ifndef RUN_RUN_H
#define RUN_RUN_H

#include "applet.h"
#include "host/run/run_remote.h"

extern const struct applet run_applet, shell_applet;

/* Runs a program in one target. The exit status, after messages for `applet`. */
int run_in(const char *applet, const struct link_options *how, const struct target *t,
           const struct run_request *r);

#endif
