/* Params and results of the session methods, as plain structs. Strings are owned by params_release. */
#ifndef APPLETS_BASH_SESSION_TYPES_H
#define APPLETS_BASH_SESSION_TYPES_H

#include <stdbool.h>

#include "commands/confine/walls.h"
#include "params.h"
#include "surroundings_param.h"
#include "user_param.h"

#define SESSION_PREFIX "BashSession"

#define SESSION_OUTPUT_MAX                                                                                   \
    (10LL << 20) /* bytes kept for, and given by, one call, where it doesn't say less */

struct new_session_params {
    struct user_param user;
    struct text cwd, shell, term;
    struct texts program, env;
    long long rows, cols;
    long long ends_with; /* a pid; 0: none */
    struct surroundings surroundings;
    struct walls_params walls;
    struct record_params {
        bool on;
        struct text path;
        long long version, max;
    } record;
};
#define RECORD_DEFAULTS                                                                                      \
    {                                                                                                        \
        .version = 2, .max = 64 << 20                                                                        \
    }
#define NEW_SESSION_DEFAULTS                                                                                 \
    {                                                                                                        \
        .rows = 24, .cols = 200, .walls = WALLS_DEFAULTS, .record = RECORD_DEFAULTS                          \
    }

struct interact_params {
    struct text session_name;
    struct text input;           /* s == NULL: a read */
    long long wait_for_output_s; /* < 0: not given */
    double idle_timeout_s;       /* < 0: not given */
    long long max_output_bytes;
    bool restart;
};
#define INTERACT_DEFAULTS                                                                                    \
    {                                                                                                        \
        .wait_for_output_s = -1, .idle_timeout_s = -1                                                        \
    }

struct run_params {
    struct text session_name;
    struct text command;
    double timeout_s;       /* < 0: none */
    double ready_timeout_s; /* < 0: see ready_ms in session.h */
    long long max_output_bytes;
    bool interrupt_abandoned;
};
#define RUN_DEFAULTS                                                                                         \
    {                                                                                                        \
        .timeout_s = -1, .ready_timeout_s = -1                                                               \
    }

enum run_state { RUN_COMPLETED, RUN_TIMEOUT, RUN_AWAITING_INPUT, RUN_EXITED };

struct run_result {
    enum run_state state;
    int exit_code; /* -1: not known; only with RUN_COMPLETED and RUN_EXITED (there -N: signal N) */
    bool has_exit_code;
    const char *output;
    size_t output_len;
    const char
        *error; /* the type of the exception that ended it, and in the next lines its message; NULL: none */
    const char *cwd; /* NULL: not known */
    long long duration_ms;
    unsigned long long omitted_bytes;
    const char *notice; /* what else is to be known; NULL: nothing */
};

struct resize_params {
    struct text session_name;
    long long rows, cols;
};

struct tape_params {
    struct text session_name;
    struct record_params record;
    bool stop;
    long long cursor; /* < 0: none */
    double timeout_s; /* < 0: none */
};
#define TAPE_DEFAULTS                                                                                        \
    {                                                                                                        \
        .record = RECORD_DEFAULTS, .cursor = -1, .timeout_s = -1                                             \
    }

struct signal_params {
    struct text session_name;
    struct text signal;
};

struct session_status {
    long pid; /* of the shell; 0: it has ended */
    const char *user, *shell, *state;
    char cwd[4096];
    char foreground[16]; /* name of the foreground program, "" for the shell itself */
    long long idle_ms;
    unsigned long long unread_bytes;
};

#endif
