/* What is the server's own: its keepers, its socket; and what is not, the processes of other builds. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "ipc.h"
#include "mem.h"
#include "other_builds.h"
#include "server_internal.h"

const struct base *server_base(const struct server *s)
{
    return &s->base;
}

bool server_is_own_keeper(void *arg, pid_t pid)
{
    const struct server *s = arg;
    for (const struct kept *k = s->kept; k; k = k->next)
        if (k->pid == pid)
            return true;
    return false;
}

/* ---- its socket ---- */

static bool stat_socket(const struct server *s, struct stat *st)
{
    char name[IPC_NAME_MAX];
    return ipc_name(name, IPC_SERVER) == 0 && fstatat(s->base.dirfd, name, st, AT_SYMLINK_NOFOLLOW) == 0;
}

bool server_know_socket(struct server *s)
{
    struct stat st;
    if (!stat_socket(s, &st))
        return false;
    s->socket.dev = st.st_dev;
    s->socket.ino = st.st_ino;
    return true;
}

/* The number is not given to another file while the socket is bound to this one. */
bool server_has_socket(const struct server *s)
{
    struct stat st;
    if (!stat_socket(s, &st))
        return errno != ENOENT; /* no word of its being gone */
    return st.st_dev == s->socket.dev && st.st_ino == s->socket.ino;
}

void server_clear_sockets(const struct server *s)
{
    if (server_has_socket(s))
        ipc_clear(s->base.dirfd);
}

/* ---- the processes of other builds ---- */

void server_find_others(struct server *s)
{
    if (s->others)
        other_builds_release(s->others);
    else
        s->others = mem_zalloc(sizeof *s->others);
    other_builds_find(s->others);
}

bool server_is_others(void *arg, pid_t pid)
{
    const struct server *s = arg;
    return other_builds_have_pid(s->others, pid);
}

bool server_has_others(const struct server *s)
{
    return s->others->n > 0;
}
