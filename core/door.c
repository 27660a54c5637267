#include "door.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "io.h"

#define PREFIX "Door-"
#define LIMIT_SHARE 32 /* descriptors that there may be, for each door */

static void close_door(struct door *d)
{
    io_close(&d->fd);
    d->made = false;
}

/* Where descriptors are few they are left for clients. */
static int most_doors(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= (rlim_t)DOORS * LIMIT_SHARE)
        return DOORS;
    return (int)(limit.rlim_cur / LIMIT_SHARE);
}

struct door *door_lend(struct door doors[DOORS], int dirfd)
{
    for (int i = 0, n = most_doors(); i < n; i++) {
        struct door *d = &doors[i];
        if (d->lent)
            continue;
        if (d->made && !ipc_is_hidden(dirfd, d->hidden))
            close_door(d); /* somebody has cleaned up */
        if (!d->made) {
            snprintf(d->hidden, sizeof d->hidden, PREFIX "%ld-%d", (long)getpid(), i);
            d->fd = ipc_listen_hidden(dirfd, d->hidden, NULL);
            d->made = d->fd >= 0;
        }
        d->lent = d->made;
        return d->made ? d : NULL;
    }
    return NULL;
}

int door_enter(const struct door *d)
{
    return ipc_listen_again(d->fd);
}

void door_return(struct door *d, int dirfd)
{
    d->lent = false;
    ipc_refuse_queued(d->fd);
    if (!ipc_is_hidden(dirfd, d->hidden))
        close_door(d);
}

static void remove_file(void *arg, const char *name)
{
    unlinkat(*(int *)arg, name, 0);
}

void door_clear(int dirfd)
{
    ipc_each_file(dirfd, "." PREFIX, remove_file, &dirfd);
}
