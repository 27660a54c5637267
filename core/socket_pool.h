/* A pool of listening sockets that one keeper uses after the other (those of jobs), so that not every job
 * makes a file and leaves it: a file system without a journal (ext4) looks at every inode that was removed
 * lately before it gives one away.
 *
 * The server keeps them open. While no keeper has it a socket's file has a hidden name; a keeper moves it to
 * its own, and back when it leaves. One whose keeper was killed is not used again. */
#ifndef CORE_SOCKET_POOL_H
#define CORE_SOCKET_POOL_H

#include <stdbool.h>

#include "ipc.h"

#define SOCKET_POOL_SIZE 16 /* keepers beyond so many at once make a socket of their own */

struct pooled_socket {
    bool made, lent;
    int fd;
    char hidden[IPC_NAME_MAX]; /* owner's name for ipc_show and ipc_hide while nobody has it */
};

/* One that nobody has; NULL: there are no more, or none can be made. */
struct pooled_socket *socket_pool_lend(struct pooled_socket pool[SOCKET_POOL_SIZE], int dirfd);

/* In the keeper, before anybody can connect: from then on its credentials are those that clients see. */
int socket_pool_enter(const struct pooled_socket *s);

/* In the server, when the keeper has ended. */
void socket_pool_return(struct pooled_socket *s, int dirfd);

/* Removes what a server that was killed has left. */
void socket_pool_clear(int dirfd);

#endif
