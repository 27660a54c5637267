/* What changes below a directory, as it changes. */
#ifndef TRANSFER_WATCH_H
#define TRANSFER_WATCH_H

#include <stdbool.h>

struct watch;
/* NULL with errno. */
struct watch *watch_new(void);
void watch_free(struct watch *w);
/* A directory that is open, by the path that it is called. -1 with errno. */
int watch_add(struct watch *w, int fd, const char *path);

/* Waits until something has changed, and a moment more for what comes along with it; calls `changed` for each
 * path, a directory before what is in it. `whole`: it has just come to be there, with all that is in it. 0;
 * 1: changes were lost; -1: nobody reads from the descriptor `until` any more. */
int watch_wait(struct watch *w, int until, void (*changed)(void *arg, const char *path, bool whole),
               void *arg);

#endif
