/* Connections that are kept: a process of the host's user for each target, which listens on a socket in a
 * directory of his own (place.h, "connections") and speaks there what `exec --stream` does.
 *
 * Its name is made of all that says where the target's name leads: the target, the options, and of the
 * environment and the runtimes' files what may point them elsewhere. So who would reach something else never
 * meets it. */
#ifndef INJECT_CONNECTION_H
#define INJECT_CONNECTION_H

#include "host/inject/inject_request.h"
#include "host/inject/inject_types.h"
#include "host/inject/target.h"
#include "ipc.h"

/* Methods that a connection answers itself. With {"persist_s"} (negative: for ever) the first has it kept for
 * so long at least. */
#define CONNECTION_STATUS                                                                                    \
    "rpc.connection"               /* → {target, state, pid, age_s, clients, open, socket, persist_s} */
#define CONNECTION_STOP "rpc.stop" /* ends it: what is open is abandoned; null */

/* The directory, made where it is missing: its descriptor, and its path in *path. -1 with ERR_TOOL. */
int connection_dir(struct buf *path, struct err *err);
/* The one that there is; -1: there is none. */
int connection_find_dir(void);

/* The owner's name of the socket (ipc.h). */
void connection_name(const struct inject_options *o, const struct target *t, char name[IPC_NAME_MAX]);

/* Connects to the one for a target. -1: there is none. */
int connection_open(const struct inject_options *o, const struct target *t);

/* Who begins one holds the lock, and its keeper after him; others wait. -1: there is one by now (err->code
 * 0), or there was none within wait_ms. */
int connection_lock(int dirfd, const char *name, int wait_ms, struct err *err);
/* For who holds it, at his end. */
void connection_unlock(int dirfd, const char *name);
/* Ends all to that target, also one that is being begun. */
void connection_end(const struct inject_options *o, const struct target *t);

/* Makes the request over it (fd: taken). False: it was not sent, and can be made in another way; else what
 * became of it stands in *q. timeout_ms is for the answer. */
bool connection_request(int fd, struct inject_request *q, int timeout_ms);

/* Asks each connection that there is, of that name (NULL: any, also of another build of this program) and to
 * that target (its text; NULL: any), one of the above methods. How many there were; their states, as they
 * were before, in *states as an array. In *silent (NULL: not wanted) how many are there, but say nothing;
 * where any is asked for, the states have them as well. */
int connection_ask(const char *name, const char *target, const char *method, struct buf *states, int *silent);

/* Has the one of that name kept for so long at least; -1: for ever. Where it has just ended nothing happens.
 */
void connection_lengthen(int dirfd, const char *name, int persist_ms);

#endif
