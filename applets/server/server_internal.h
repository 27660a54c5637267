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

struct server {
    struct base base;
    struct http_server *http;
    struct kept *kept;
    bool ending;
};

/* Runs the server in this process until it is told to end; `ready_fd` (-1: none) gets "\0" once it listens,
 * or a struct err. The exit status. */
int server_run(struct place *place, int ready_fd, bool foreground);

/* Ends all keepers and everything below, then calls done with the number of processes that are left. */
void server_end_all(struct server *s, void (*done)(void *arg, size_t left), void *arg);

/* Whether a socket of that owner is a keeper's. */
bool server_is_keeper(const char *owner);

/* Handler of in-process methods in the server: runs them in a process of their own, so that a slow file
 * stalls nobody. */
void server_in_process(struct rpc_call *call, struct span params, void *ctx);

/* rpc_find_fn of the server: every method of every tool. */
rpc_handler server_find(void *ctx, const char *method, void **handler_ctx);

#endif
