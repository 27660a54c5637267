/* Shared by the files of the server alone. */
#ifndef APPLETS_SERVER_SERVER_INTERNAL_H
#define APPLETS_SERVER_SERVER_INTERNAL_H

#include "http_server.h"
#include "server.h"

/* A keeper that this server forked (one of an earlier server is known by its socket only). */
struct kept {
    struct kept *next;
    struct server *server;
    pid_t pid;
    char name[IPC_NAME_MAX];
};

struct ending;

struct server {
    struct base base;
    struct http_server *http;
    struct kept *kept;
    struct ending *ending; /* NULL: not yet */
    dev_t socket_dev;      /* of the file that its socket is bound to */
    ino_t socket_ino;
    int inotify; /* -1: none */
    struct loop_source *look;
    bool foreground;
};

/* ---- starting (server_start.c) ---- */

/* The lock that every starter takes; released by closing it. -1 when it can't be had. */
int server_lock(const struct place *p, struct err *err);

/* The first place in which there are sockets, live or not; false when there is none. */
bool server_find_sockets(struct place *p, bool keepers_only);

/* ---- the server process ---- */

/* Runs the server in this process until it is told to end. It takes the lock (server_lock) and releases it
 * once it listens; `ready_fd` (-1: none) then gets "\0", or otherwise a struct err. The exit status. */
int server_run(struct place *place, int lock_fd, int ready_fd, bool foreground);

/* Ends all keepers and everything below, and then the process; before that `done` (may be NULL) gets the
 * number of processes that are left. May be called again, and means the same end. */
void server_end_all(struct server *s, void (*done)(void *arg, size_t left), void *arg);

/* Removes all sockets, unless another server has taken this one's place. */
void server_clear_sockets(const struct server *s);

/* `arg` is the server; whether the process is a keeper that it has forked itself. */
bool server_is_own_keeper(void *arg, pid_t pid);

/* Whether a socket of that owner is a keeper's. */
bool server_is_keeper(const char *owner);

/* Handler of in-process methods in the server: runs them in a process of their own, so that a slow file
 * stalls nobody. */
void server_in_process(struct rpc_call *call, struct span params, void *ctx);

/* rpc_find_fn of the server: every method of every tool. */
rpc_handler server_find(void *ctx, const char *method, void **handler_ctx);

#endif
