/* Connections over the network. For the few commands that people use on a host: everything else is local. */
#ifndef CORE_NET_H
#define CORE_NET_H

#include <stdbool.h>
#include <sys/socket.h>

#include "err.h"

/* A connected stream socket to a host (a name, or an address without brackets) and port, which doesn't block.
 * Its address is looked for, and every one of them tried, for timeout_ms each at most. -1 with ERR_TOOL. */
int net_connect(const char *host, const char *port, int timeout_ms, struct err *err);
/* The same with no address but those that it takes; ERR_PARAMS where it takes none of them. */
typedef bool (*net_takes_fn)(const void *arg, const struct sockaddr *at);
int net_connect_to(const char *host, const char *port, net_takes_fn takes, const void *arg, int timeout_ms,
                   struct err *err);

/* Waits for POLLIN or POLLOUT. 0, or -1 with errno: ETIMEDOUT when nothing has come in timeout_ms. */
int net_wait(int fd, short events, int timeout_ms);

#endif
