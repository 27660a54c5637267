/* file_watch: what changes in a tree, told by a keeper of its own from one call to the next. */
#ifndef FILE_WATCH_H
#define FILE_WATCH_H

#include "keeper.h"
#include "params.h"
#include "rpc.h"
#include "user_param.h"

#define WATCH_PREFIX "FileWatch"

struct watch_params {
    struct text path, cursor;
    struct texts exclude;
    double timeout; /* negative: none */
    long long ends_with;
    bool recursive, stop;
    struct user_param user;
};
#define WATCH_DEFAULTS                                                                                       \
    {                                                                                                        \
        .timeout = -1, .recursive = true                                                                     \
    }

extern const struct params_table watch_params_table;

/* Splits a cursor, NAME:NUMBER. False: it is none of ours. */
bool watch_cursor(const char *cursor, char owner[IPC_NAME_MAX], long long *number);

/* Runs in the keeper (keeper_start_fn): arg is a struct starting with struct watch_params. */
int watch_start_in_keeper(struct keeper *k, void *arg, struct err *err);

/* The server's method. */
void file_watch(struct rpc_call *call, struct span params, void *ctx);

#endif
