/* One target made ready: what is there is found out, the right binary is written, proves itself and serves;
 * and the way back. */
#ifndef INJECT_ONE_H
#define INJECT_ONE_H

#include "host/inject/injection.h"

/* Makes the target ready. 0, or -1 with the failure in *r. With a request (NULL: none), sent too where that
 * takes no call more. Where it was sent and not answered, -1 with the exit status alone. */
int inject_one(const struct inject_options *o, const struct target *t, struct transport *transport,
               struct inject_result *r, struct inject_request *request);

/* The command line that runs the program in a target that is ready, with these arguments. */
int inject_command(const struct target *t, const struct inject_result *r, const char *const *arguments,
                   struct argv *out, struct err *err);

/* eject.c: the way out, with its result in *r. */
void eject_one(const struct inject_options *o, const struct target *t, struct transport *transport,
               struct inject_result *r);

#endif
