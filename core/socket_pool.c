#include "socket_pool.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "io.h"

#define PREFIX "Pool-"
#define LIMIT_SHARE 32 /* descriptors that there may be, for each socket */

static void close_one(struct pooled_socket *s)
{
    io_close(&s->fd);
    s->made = false;
}

/* Where descriptors are few they are left for clients. */
static int most(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= (rlim_t)SOCKET_POOL_SIZE * LIMIT_SHARE)
        return SOCKET_POOL_SIZE;
    return (int)(limit.rlim_cur / LIMIT_SHARE);
}

struct pooled_socket *socket_pool_lend(struct pooled_socket pool[SOCKET_POOL_SIZE], int dirfd)
{
    for (int i = 0, n = most(); i < n; i++) {
        struct pooled_socket *s = &pool[i];
        if (s->lent)
            continue;
        if (s->made && !ipc_is_hidden(dirfd, s->hidden))
            close_one(s); /* somebody has cleaned up */
        if (!s->made) {
            snprintf(s->hidden, sizeof s->hidden, PREFIX "%ld-%d", (long)getpid(), i);
            s->fd = ipc_listen_hidden(dirfd, s->hidden, NULL);
            s->made = s->fd >= 0;
        }
        s->lent = s->made;
        return s->made ? s : NULL;
    }
    return NULL;
}

int socket_pool_enter(const struct pooled_socket *s)
{
    return ipc_listen_again(s->fd);
}

void socket_pool_return(struct pooled_socket *s, int dirfd)
{
    s->lent = false;
    ipc_refuse_queued(s->fd);
    if (!ipc_is_hidden(dirfd, s->hidden))
        close_one(s);
}

static void remove_file(void *arg, const char *name)
{
    unlinkat(*(int *)arg, name, 0);
}

void socket_pool_clear(int dirfd)
{
    ipc_each_file(dirfd, "." PREFIX, remove_file, &dirfd);
}
