/* The private folder of a browser: its profile, its temporary files, its shared memory.
 *
 * It lies where there is room for it. A record in the place, locked for as long as the keeper lives, says
 * where: so whatever the end of the keeper and of the server, the next server finds the folder and removes
 * it. */
#ifndef APPLETS_WEB_BROWSER_PROFILE_H
#define APPLETS_WEB_BROWSER_PROFILE_H

#include "err.h"
#include "ipc.h"
#include "user.h"

struct profile {
    char *path;
    int dirfd; /* the place */
    int lock;  /* the record */
    char record[1 + IPC_NAME_MAX];
};

/* Makes the folder of a session, for `user` (NULL: ourselves). ERR_TOOL that says what was tried. */
int profile_make(struct profile *p, int dirfd, const char *session, const struct user *user, struct err *err);

/* Removes folder and record; once the browser has ended. Where it can't (yet) it may be called again. */
void profile_remove(struct profile *p);

/* Removes the folders of keepers that are dead. */
void profile_sweep(int dirfd);

#endif
