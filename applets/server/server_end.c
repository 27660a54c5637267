/* The end of everything: keepers first, each with its own tree, then whatever is left below the server. */
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "mem.h"
#include "proc.h"
#include "server_internal.h"

/* A keeper has TERM, 2 s, KILL, 1 s; one that hasn't answered by then is stuck or stopped. In all: 4 s. */
#define KEEPERS_MS 3300
#define REST_MS 500

struct ending {
    struct server *server;
    void (*done)(void *arg, size_t left);
    void *arg;
    size_t left;
};

static void forget_socket(void *arg, const char *owner)
{
    ipc_unlink(((struct ending *)arg)->server->base.dirfd, owner);
}

static void all_ended(void *arg, size_t left)
{
    struct ending *e = arg;
    ipc_each(e->server->base.dirfd, forget_socket, e);
    unlinkat(e->server->base.dirfd, ".lock", 0);
    e->done(e->arg, e->left + left);
    free(e);
}

/* With all that hangs below it first: afterwards that could not be found any more. */
static void kill_stuck(pid_t keeper)
{
    struct proc *list;
    size_t n = proc_descendants(keeper, &list);
    for (size_t i = 0; i < n; i++)
        proc_signal(&list[i], SIGKILL);
    free(list);
    kill(keeper, SIGKILL);
}

static void keepers_ended(void *arg, struct reply *replies, size_t n)
{
    struct ending *e = arg;
    for (size_t i = 0; i < n; i++) {
        if (replies[i].pid > 0 && replies[i].result.len == 0)
            kill_stuck(replies[i].pid);
        else
            e->left += strtoul(buf_str(&replies[i].result), NULL, 10);
    }
    tree_end(e->server->base.loop, 0, 0, REST_MS, NULL, all_ended, e);
}

void server_end_all(struct server *s, void (*done)(void *arg, size_t left), void *arg)
{
    struct ending *e = mem_zalloc(sizeof *e);
    *e = (struct ending){.server = s, .done = done, .arg = arg};
    s->ending = true;
    server_ask(s, NULL, KEEPER_END, KEEPERS_MS, keepers_ended, e);
}
