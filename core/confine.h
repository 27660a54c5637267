/* What a program that is started may do: applied by the process that becomes it, for good and for all that it
 * starts. Every part is told by what the kernel holds it; what could not be had is an error, unless the best
 * effort is asked for. */
#ifndef CORE_CONFINE_H
#define CORE_CONFINE_H

#include <stdbool.h>
#include <stddef.h>

#include "buf.h"
#include "err.h"

/* What is confined. The first four are lists of paths, the last ones numbers. */
enum confine_what {
    CONFINE_READ,
    CONFINE_WRITE,
    CONFINE_EXECUTE,
    CONFINE_HIDE,
    CONFINE_TMP, /* a /tmp of its own */
    CONFINE_NETWORK,
    CONFINE_SYSTEM_CALLS,
    CONFINE_PRIVILEGES,
    CONFINE_SIGNALS,  /* to others; where a kernel has it */
    CONFINE_METADATA, /* modes, owners, times of what can't be written to; where a kernel has it */
    CONFINE_MEMORY,
    CONFINE_PROCESSES,
    CONFINE_CPUS,
    CONFINE_CPU_SECONDS,
    CONFINE_FILE_SIZE,
    CONFINE_OPEN_FILES,
    CONFINE_WALL_SECONDS,
    CONFINE_PARTS
};
enum { CONFINE_LISTS = CONFINE_HIDE + 1, CONFINE_FIRST_LIMIT = CONFINE_MEMORY };

/* How: bits. */
enum {
    CONFINE_BY_LANDLOCK = 1,
    CONFINE_BY_SECCOMP = 2,
    CONFINE_BY_MOUNTS = 4,
    CONFINE_BY_NETNS = 8,
    CONFINE_BY_CGROUP = 16,
    CONFINE_BY_RLIMIT = 32,
    CONFINE_BY_TIMER = 64,
    CONFINE_BY_NO_NEW_PRIVS = 128,
};

/* What of the network stays; nothing: none. */
enum { CONFINE_NET_UNIX = 1, CONFINE_NET_LOOPBACK = 2, CONFINE_NET_PORTS = 4 };
enum { CONFINE_PORTS_MAX = 32 };

struct confine_port {
    unsigned short number;
    bool bind; /* otherwise to connect to */
};

/* Written by the process that is confined: memory that it shares with who starts it. */
struct confine_report {
    unsigned char by[CONFINE_PARTS];
    int abi; /* Landlock's; 0: none */
    unsigned uid, gid;
    char cwd[2048]; /* where it begins */
};

enum { CONFINE_SAID = 200 };

struct confine_refusal {
    enum confine_what what; /* the wall: CONFINE_READ, …, CONFINE_NETWORK */
    char path[CONFINE_SAID / 2], said[CONFINE_SAID];
};

struct confine_group {
    char *dirs[4]; /* control groups that were made */
    size_t n;
};

struct confine {
    /* confine_begin and confine_enter, for who has no code of them; set by confine_prepare */
    int (*begin)(const struct confine *c, struct err *err),
        (*enter)(const struct confine *c, struct err *err);
    bool wanted[CONFINE_PARTS];
    char **paths[CONFINE_LISTS]; /* each ends with NULL; NULL: no path */
    unsigned network;
    struct confine_port ports[CONFINE_PORTS_MAX];
    size_t n_ports;
    long long limits[CONFINE_PARTS]; /* of those that are wanted */
    const char *terminals[2];        /* that it may write to as well; NULL: none */
    bool best_effort;
    char *place;     /* ours, whose sockets are hidden where mounts can be made; NULL: none */
    char preset[12]; /* that it was made of; "": none */
    struct confine_group group;
    struct confine_report *report;
};

const char *confine_name(enum confine_what what);

/* Makes the report, and the control groups for the limits that take one. 0, or -1 when there is no memory. */
int confine_prepare(struct confine *c, struct err *err);

/* In the process that becomes the program: before it becomes another user, and at the end, from its
 * directory. What cannot be had is an error of the second, unless best_effort. */
int confine_begin(const struct confine *c, struct err *err);
int confine_enter(const struct confine *c, struct err *err);

/* What holds what, as a JSON object: {"write":"landlock+mounts","network":"seccomp"}; "none" is what was
 * wanted and isn't held. */
void confine_put_enforced(const struct confine *c, struct buf *out);

/* Whether a program that is confined so says in its output that it met a wall: the last one that it names, in
 * words for people ("Read-only: /etc/passwd (policy workspace)"). The kernel tells nobody else. Paths count
 * from cwd (NULL: where it began). */
bool confine_refused(const struct confine *c, const char *cwd, const char *text, size_t n,
                     struct confine_refusal *refusal);

/* The limit whose control group has ended or refused something more often than met[] says, which is then what
 * has been; CONFINE_PARTS: none has. */
enum confine_what confine_limit_met(const struct confine_group *g, unsigned long long met[2]);

/* Removes the groups, which what was started has left. */
void confine_group_remove(struct confine_group *g);

void confine_release(struct confine *c); /* but the lists of paths */

#endif
