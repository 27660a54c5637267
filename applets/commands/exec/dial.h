/* Where sockets are, in the words of `toolbox forward`: PORT, HOST:PORT or an absolute path. */
#ifndef EXEC_DIAL_H
#define EXEC_DIAL_H

#include "loop.h"
#include "net.h"

typedef void (*dial_fn)(void *arg, int fd, const struct err *why);

/* Connects, on 127.0.0.1 where no host is given; a name is looked up in a process of its own. `done` gets a
 * descriptor that doesn't block, or -1 and why not: once, from the loop or at once. It can't be taken back.
 */
void dial(struct loop *loop, const char *where, dial_fn done, void *arg);
/* The same of a HOST:PORT alone, and never at once: connected when `done` gets it, to an address that it
 * takes (ERR_PARAMS: there is none; NULL: any). */
void dial_host(struct loop *loop, const char *where, net_takes_fn takes, const void *of, dial_fn done,
               void *arg);
/* Listens likewise; a path is made, for its user alone. Doesn't block. -1 with ERR_TOOL. */
int dial_listen(const char *where, struct err *err);

#endif
