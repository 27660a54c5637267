/* The process that keeps a connection: between the stream to the target and those who share it. */
#ifndef CONNECT_SERVE_H
#define CONNECT_SERVE_H

#include "err.h"
#include "ipc.h"

struct connect_setup {
    const char *target;    /* its text */
    const char *container; /* whose name an engine here is asked about; NULL: none */
    char *const *command;  /* runs `exec --stream` there */
    int dirfd;             /* where it listens */
    const char *path;      /* of that directory */
    char name[IPC_NAME_MAX];
    int persist_ms; /* without a client; -1: for ever */
    int lock;       /* connection_lock's */
    int told;       /* gets one byte when it listens, or a struct err */
};

/* Serves until it is stopped, or the target's side ends. The exit status. The descriptors are taken. */
int connect_serve(const struct connect_setup *setup);

#endif
