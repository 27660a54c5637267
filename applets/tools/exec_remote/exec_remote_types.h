/* Params of the job methods, as plain structs. Strings are owned by params_release. */
#ifndef APPLETS_EXEC_REMOTE_EXEC_REMOTE_TYPES_H
#define APPLETS_EXEC_REMOTE_EXEC_REMOTE_TYPES_H

#include <stdbool.h>

#include "commands/confine/walls.h"
#include "params.h"
#include "surroundings_param.h"
#include "user_param.h"

struct start_params {
    struct text command; /* for /bin/sh -c; or */
    struct texts argv;
    struct text input, cwd, encoding;
    struct user_param user;
    struct texts env;
    bool stdin_open;
    double timeout_s;    /* < 0: none */
    long long umask;     /* < 0: the server's */
    long long ends_with; /* a pid; 0: none */
    struct surroundings surroundings;
    struct walls_params walls;
    struct pty_params {
        bool on;
        long long rows, cols;
    } pty;
};
#define START_DEFAULTS                                                                                       \
    {                                                                                                        \
        .timeout_s = -1, .umask = -1, .walls = WALLS_DEFAULTS, .pty = {.rows = 24, .cols = 80 }              \
    }

/* Of every method of a job; each takes those that its table names. */
struct job_params {
    long long pid;
    long long ack_seq;
    struct text data, signal;
    long long rows, cols;
    double timeout_s; /* < 0: none */
};
#define JOB_DEFAULTS                                                                                         \
    {                                                                                                        \
        .timeout_s = -1                                                                                      \
    }

#endif
