/* What a target's shell has answered to script_recon. Everything in it was written by the other side and is
 * believed only as far as it does no harm. */
#ifndef INJECT_RECON_H
#define INJECT_RECON_H

#include <stdbool.h>

#include "host/inject/argv.h"
#include "json.h"

struct recon {
    char os[32], machine[32]; /* as uname has them; "" where it said nothing */
    bool no_uname;
    char loader_arch[32]; /* of the shell's own program, where there is no uname; "": not known */
    char uid[16];
    struct buf distribution; /* its name for people; may be empty */
    const char *libc;        /* by the loaders: "glibc", "musl", "none" */
    int bits;                /* of the userland, by the loaders; 0: not known */
    struct argv dirs;        /* directories that may do, the likeliest first */
    bool everywhere;         /* whether what is mounted is among them */
    char *found;             /* path of the program that is there; NULL: none */
    struct span verdict;     /* the JSON object that it printed, in the answer; s NULL: none */
    bool whole;              /* the answer has its end */
};

#define RECON_DIRS_MAX 8

/* False when there is no answer in it. `answer` has to stay. */
bool recon_read(struct recon *r, struct span answer);
void recon_release(struct recon *r);

/* The architecture as releases name it; NULL with an error that says what there is instead. */
const char *recon_arch(const struct recon *r, struct err *err);

/* The next line from *at, without its newline; false at the end. */
bool recon_line(struct span text, size_t *at, struct span *line);

/* A member of a JSON object that was read, as text; "" where there is none. */
void recon_member(struct span object, const char *key, struct buf *text);

#endif
