/* What `probe` finds out: about its own file, the system, the process it is, and what may be done here.
 *
 * Whatever can't be found out is absent: NULL, an empty string, or PROBE_UNKNOWN. Strings are as the system
 * has them, in whatever bytes. */
#ifndef PROBE_TYPES_H
#define PROBE_TYPES_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/utsname.h>

#include "osinfo.h"
#include "sha256.h"

#define PROBE_UNKNOWN (-1) /* for numbers: unknown or, as a limit, none */
#define PROBE_SHELLS_MAX 16
#define PROBE_PLACES_MAX 8

struct probe_self {
    char *path;
    long long size;
    char sha256[SHA256_HEX_SIZE];
};

struct probe_platform {
    struct utsname kernel;
    char *id; /* of the distribution, as version and name */
    char *version;
    char *name;
    const char *libc; /* kind: that of libc_of_loader(), "none" or "unknown" */
    char libc_version[LIBC_VERSION_SIZE];
    char *container; /* as its manager says: docker, podman, lxc, kubernetes, … */
    char *shells[PROBE_SHELLS_MAX];
    size_t n_shells;
};

struct probe_identity {
    uid_t uid; /* effective, as gid */
    gid_t gid;
    gid_t *groups; /* gid first */
    size_t n_groups;
    char *user; /* NULL: no entry */
    char *home; /* of the entry, "/" without one */
    bool capabilities_known;
    uint64_t capabilities; /* effective; bit n is capability n */
    int seccomp;           /* 0 off, 1 strict, 2 filter */
    int no_new_privs;
};

struct probe_place {
    char *path;
    const char *refusal; /* NULL: a file can be written there and executed; a constant */
};

struct probe_limits {
    long long nofile; /* soft, and hard */
    long long nofile_max;
    long long nproc;     /* of the user */
    long long pids;      /* of the control group */
    long long memory;    /* of the control group, bytes */
    long long centicpus; /* hundredths: the control group's share of the processors that may be used */
};

struct probe_server {
    bool running;
    pid_t pid;
    char *directory;
};

struct probe {
    struct probe_self self;
    struct probe_platform platform;
    struct probe_identity identity;
    struct probe_place places[PROBE_PLACES_MAX];
    size_t n_places;
    struct probe_limits limits;
    bool pty;
    char *pty_refusal; /* why there is none */
    struct probe_server server;
};

#endif
