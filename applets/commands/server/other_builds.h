/* What other builds of toolbox run beside this one, in the user's places and this container.
 *
 * No build talks to another's server or keepers: a connection is made to see who lives there, and nothing is
 * sent. Whatever is to be asked, that build's own program asks (program.h). */
#ifndef APPLETS_SERVER_OTHER_BUILDS_H
#define APPLETS_SERVER_OTHER_BUILDS_H

#include <stdbool.h>
#include <sys/types.h>

#include "buf.h"
#include "err.h"
#include "ipc.h"
#include "json.h"

/* A member of a request's envelope, true: what other builds have is not to be added to the answer. */
#define OTHER_BUILDS_NONE "toolbox_own_build"

struct other_keeper {
    char name[IPC_NAME_MAX];
    pid_t pid; /* 0: it takes no connection, as one that is stopped */
};

struct other_build {
    char build[BUILD_ID_SIZE];
    int dirfd;                    /* its place */
    bool has_server;              /* one lives */
    pid_t server;                 /* 0: as above */
    struct other_keeper *keepers; /* sessions, jobs, MCP servers and browsers that live */
    size_t n_keepers;
};

struct other_builds {
    struct other_build *list;
    size_t n;
};

/* Those of which a server or a keeper lives, or that have left what somebody may still ask for. */
void other_builds_find(struct other_builds *o);
void other_builds_release(struct other_builds *o);
#define OTHER_BUILDS_AUTO __attribute__((cleanup(other_builds_release)))

/* The one whose keeper lives under that name; NULL: none. */
const struct other_build *other_builds_with(const struct other_builds *o, const char *owner);
/* Whether one of their processes is that one. */
bool other_builds_have_pid(const struct other_builds *o, pid_t pid);
/* True when another build has, or had, a socket of that owner in the directory. */
bool other_builds_used(int dirfd, const char *owner);

/* Opens the program of the one that has `owner`, for program_exec. -1 with ERR_TOOL that names both. */
int other_build_open(const struct other_build *b, const char *owner, struct err *err);

/* Where `owner` lives in another build this process becomes that build's program, with `input` on its
 * standard input (s NULL: what there is). Returns where it doesn't, or the program can't be had. */
void other_builds_hand_over(const char *owner, char *const *argv, struct span input);

/* Runs the program to its end: `argv`, and `input` on its standard input (NULL: nothing); what it prints is
 * added to `out`. Its exit status, -1 when it could not be run or was killed. Blocks, limit_ms at most. */
int other_build_run(int program, char *const *argv, struct span input, int limit_ms, struct buf *out);

#endif
