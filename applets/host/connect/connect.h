/* `toolbox connect`: connections to targets that are kept, for many calls. */
#ifndef CONNECT_H
#define CONNECT_H

#include "applet.h"
#include "host/inject/inject_types.h"
#include "host/inject/target.h"

extern const struct applet connect_applet;

/* Makes the target ready and leaves a process behind that keeps a connection to it; one that there is is kept
 * for so long as well. persist_ms: how long without anybody who uses it; -1: for ever. The exit status, after
 * a message for `applet` where that isn't EXIT_OK. */
int connect_start(const char *applet, const struct inject_options *o, const struct target *t, int persist_ms);

/* The same behind a call that was made: the target is ready, as *r says, and nobody waits for it. Where it
 * can't be had there is none. */
void connect_behind(const char *applet, const struct inject_options *o, const struct target *t,
                    const struct inject_result *r, int persist_ms);

/* How long a connection is kept where nothing is said of it: where a call of a runtime that is known costs
 * something. -1: there none is begun. */
int connect_usual_ms(const struct target *t);
#define CONNECT_USUAL (-2) /* as a persist_ms: so long */

/* Takes the value of --persist. EXIT_OK, or EXIT_USAGE after a message. */
int connect_persist(const char *applet, const char *value, int *persist_ms);

#endif
