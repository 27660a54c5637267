/* Finds out what `probe` reports. Needs nothing and changes nothing: what is missing is reported as unknown,
 * no server is started, and the files that are written to try a place are gone when the call returns, also
 * when a signal comes. */
#ifndef PROBE_CONTROLLER_H
#define PROBE_CONTROLLER_H

#include "probe_types.h"

void probe_collect(struct probe *p);
void probe_release(struct probe *p);

/* Its parts. `root` is a descriptor of the root directory: the paths that are looked at begin there. */
void probe_platform(struct probe_platform *s, int root);
void probe_platform_release(struct probe_platform *s);
void probe_limits(struct probe_limits *l, int root);
void probe_identity(struct probe_identity *id);

/* Tries one directory. NULL when a file can be written there and executed, else a constant: why not. */
const char *probe_try_place(const char *directory);

/* The name of a capability as libcap has it, "cap_63" for one that has none yet; name itself is returned. */
#define PROBE_CAPABILITY_SIZE 32
#define PROBE_CAPABILITIES_ALL ((1ULL << 41) - 1) /* those that have names */
const char *probe_capability_name(unsigned bit, char name[PROBE_CAPABILITY_SIZE]);
/* NULL: unknown. */
const char *probe_seccomp_name(int mode);

#endif
