/* The parent of a program that is run over a stream: it starts it, signals it, tells how it has ended, and
 * ends it with all that is below it when the stream is gone. The bytes don't go through here. */
#ifndef EXEC_RUN_KEEPER_H
#define EXEC_RUN_KEEPER_H

#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "err.h"

struct user;

struct run_start {
    char *const *argv;
    char *const *env;
    const char *cwd; /* NULL: where we are */
    const struct user *user;
    int fds[3];           /* become the program's; closed by the starter */
    bool terminal;        /* they are one */
    long long timeout_ms; /* -1: none */
    struct rlimit descriptors;
};

/* What it says, once: the status of the program, or why there is none. */
struct run_told {
    int status; /* as a shell has it */
    bool timed_out, failed;
    struct err err;
};

/* Forks one. The descriptor on which it says that, and takes signals, a byte each; closed, or at its end:
 * nobody needs the program any more. -1 with ERR_TOOL. */
struct loop;
int run_keeper_start(struct loop *loop, const struct run_start *start, struct err *err);

#endif
