/* What is wanted of an injection and what became of it. */
#ifndef INJECT_TYPES_H
#define INJECT_TYPES_H

#include <stdbool.h>
#include <stddef.h>

#include "buf.h"
#include "err.h"
#include "host/inject/target.h"
#include "sha256.h"

struct packed_folder;
struct release_file;

struct inject_options {
    struct runtime_options runtimes;
    const char *dir;  /* where to; NULL: the first place that will do */
    const char *name; /* of the program there */
    const char *links;
    const char
        *user; /* as whom; NULL: root, where that can be had; "default": as whom the target runs things */
    int timeout_ms; /* for a call of the runtime */
    int jobs;
    bool verbose, quiet, json;
    bool replace;                     /* what other builds run there is ended */
    bool upgrade;                     /* it is moved to this one */
    const struct packed_folder *with; /* a folder that is to come along; NULL: none */
    const struct release_file *own; /* this machine's own file, picked before; NULL: it is picked each time */
    bool batch; /* of several: one call for each where that will do, since they share the processors */
};

/* In their order; what they are called is in inject_steps. */
enum inject_step {
    STEP_TARGET, /* reached, and found to be one */
    STEP_RECON,
    STEP_CHOICE,
    STEP_PLACING,
    STEP_PROOF,
    STEP_SERVER,
    STEP_HEALTH,
    STEP_DOCTOR, /* where every step is to be told: what of the tools works there */
    N_STEPS,
};
extern const char *const inject_steps[N_STEPS];

/* Exit status of a failure: a code for each step. */
enum { EXIT_OF_STEP = 3, EXIT_BY_SIGNAL = 128 };
/* Exit status of a call whose request was sent: its time was over, or its answer got lost. */
enum { EXIT_UNANSWERED = 124, EXIT_LOST = 125 };

/* What went wrong. */
struct inject_failure {
    enum inject_step step;
    int exit;
    struct buf message, tried, advice; /* what was tried, one after the other */
};

/* What is known of the target; "" while it isn't. */
struct inject_found {
    struct buf about; /* what it is, for people */
    char os[32], arch[32];
    char uid[16];
    char *user; /* how the runtime has to be told who; NULL: not at all */
};

/* The program there. */
struct inject_placed {
    struct buf path;
    char sha256[SHA256_HEX_SIZE];
    char state[16]; /* placed, replaced, identical */
    size_t size;
};

/* What became of what other builds had there. */
struct inject_others {
    struct buf ended;
    struct buf moved, stayed; /* what was moved to this one; and what not, with reasons */
};

/* What it took. */
struct inject_cost {
    size_t sent;
    int calls;
    long long us[N_STEPS]; /* each; -1: not come to */
    long long whole_us;    /* of an ejection, which has no steps */
};

struct inject_result {
    char *target;
    bool ok;
    struct inject_failure failure;
    struct inject_found found;
    struct inject_placed placed;
    struct inject_others others;
    struct buf server; /* what the server says of itself */
    struct buf doctor; /* what does not work there, in a line */
    struct inject_cost cost;
};

void inject_result_init(struct inject_result *r, const char *target);
void inject_result_release(struct inject_result *r);

/* Takes down a failure; returns -1. The error's message is put in, or `said` as it is. */
int inject_fail(struct inject_result *r, enum inject_step step, const char *advice, const struct err *why);

/* Takes down as whom it runs there: of what somebody else has said, the digits alone. */
void inject_take_uid(struct inject_result *r, const char *digits);

#endif
