/* A keeper: the process that owns one session, job or MCP server.
 *
 * It is forked from the server without exec, is the subreaper of everything its child ever forks, listens on
 * a socket of its own, and lives on when the server dies. It keeps the server's uid; only what it starts
 * becomes another user. */
#ifndef CORE_KEEPER_H
#define CORE_KEEPER_H

#include <stdbool.h>
#include <sys/types.h>

#include "buf.h"
#include "socket_pool.h"
#include "err.h"
#include "ipc.h"
#include "loop.h"

/* What server and keepers stand on. */
struct base {
    struct loop *loop;
    int dirfd;     /* the place; also the working directory of the process */
    int start_dir; /* where the starter stood: sessions and jobs begin there; -1: gone */
    char **env;    /* the starter's environment, without private variables */
    bool detached; /* from terminal and session of the starter: keepers needn't be once more (a session of its
                      own for each costs time, where the scheduler divides among sessions) */
};

struct keeper {
    struct base base;
    char name[IPC_NAME_MAX];
    int listen_fd;             /* -1: none yet */
    char hidden[IPC_NAME_MAX]; /* owner's name for ipc_show while a listening socket has no other; "": it has
                                */
    pid_t server;              /* that has forked it */
    char word[1024];           /* what `start` lets its starter know */
    const char *kind;          /* of the failure of `start`, for programs: as long as a word; NULL: none */
    void (*at_end)(void *arg); /* NULL: nothing is to be done */
    void *at_end_arg;
};

/* Runs in the keeper: sets the work up (starts the child, serves the socket). -1: the keeper ends, its name
 * is free again. Where the name depends on the work (ipc_show) it sets name, and before, where there is none,
 * listen_fd. */
typedef int (*keeper_start_fn)(struct keeper *k, void *arg, struct err *err);

/* In the server, once: the pid and the keeper's word when it is up (its socket listens, `start` has
 * succeeded), or pid -1 and why not, with the failure's kind (NULL: none) as the word. */
typedef void (*keeper_up_fn)(void *arg, pid_t pid, const char *word, const struct err *err);

/* Forks one, which listens as `name`; "": see above, and `pooled` (may be NULL) is its socket. Its pid; or
 * -1, after `up` has been called with the reason. */
pid_t keeper_fork(const struct base *server, const char *name, const struct pooled_socket *pooled,
                  keeper_start_fn start, void *start_arg, keeper_up_fn up, void *up_arg);

/* What a new one has written to its server: its word, or NULL with the reason why there is none, and that
 * one's kind. */
const char *keeper_word(const struct buf *message, struct err *err, const char **kind);

/* Takes the name from a keeper that leaves: its socket goes back to the server where that lives. */
void keeper_hide(struct keeper *k);

/* File names of its socket, and of what that becomes in keeper_hide. */
void keeper_socket_names(const struct keeper *k, char shown[IPC_NAME_MAX], char hidden[1 + IPC_NAME_MAX]);

/* Becomes a server or keeper: not dumpable (no ptrace and no look at its files in /proc by others of the same
 * uid), subreaper, working directory in the place. `detached`: in the background as well, with a session of
 * its own, no terminal, standard descriptors on /dev/null, SIGHUP ignored. */
void background(const struct base *base, const char *title, bool detached);

#endif
