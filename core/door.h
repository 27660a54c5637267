/* Listening sockets that one keeper uses after the other (those of jobs), so that not every job makes a file
 * and leaves it: a file system without a journal (ext4) looks at every inode that was removed lately before
 * it gives one away.
 *
 * The server keeps them open. While no keeper has it a door's file has a hidden name; a keeper moves it to
 * its own, and back when it leaves. One whose keeper was killed is not used again. */
#ifndef CORE_DOOR_H
#define CORE_DOOR_H

#include <stdbool.h>

#include "ipc.h"

#define DOORS 16 /* keepers beyond so many at once make a socket of their own */

struct door {
    bool made, lent;
    int fd;
    char hidden[IPC_NAME_MAX]; /* owner's name for ipc_show and ipc_hide while nobody has it */
};

/* One that nobody has; NULL: there are no more, or none can be made. */
struct door *door_lend(struct door doors[DOORS], int dirfd);

/* In the keeper, before anybody can connect: from then on its credentials are those that clients see. */
int door_enter(const struct door *d);

/* In the server, when the keeper has ended. */
void door_return(struct door *d, int dirfd);

/* Removes what a server that was killed has left. */
void door_clear(int dirfd);

#endif
