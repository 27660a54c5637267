/* A program that is to run over a stream, as it is asked for: it is begun, and what of it is ours is handed
 * over. */
#ifndef EXEC_RUN_BEGIN_H
#define EXEC_RUN_BEGIN_H

#include <stdbool.h>

#include "err.h"
#include "span.h"

struct run_begun {
    int in,
        out[2];  /* our ends of its stdin, stdout and stderr; of a terminal the first two are it; -1: none */
    int slave;   /* of a terminal */
    int control; /* of its keeper (run_keeper.h) */
    bool terminal, stdin_open;
};

/* 0, or -1 with err. */
int run_begin(struct run_begun *begun, struct span params, struct err *err);

#endif
