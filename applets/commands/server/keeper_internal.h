/* Shared by the files of a keeper's service alone. */
#ifndef APPLETS_SERVER_KEEPER_INTERNAL_H
#define APPLETS_SERVER_KEEPER_INTERNAL_H

#include "http_server.h"
#include "server.h"

struct move;

struct keeper_service {
    struct keeper *keeper;
    const struct tool *tool;
    void *ctx;
    rpc_handler status;
    pid_t (*hang_up)(void *ctx);
    void (*cleared)(void *ctx); /* may be NULL */
    struct http_server *http;
    struct loop_source *timer;
    long long started_ms;
    struct move *move; /* NULL: it stays */
    bool owned;        /* it ends with a process */
    bool ending;
    /* while ending */
    struct rpc_call *call;
    enum keeper_ending how;
    size_t left;
};

#endif
