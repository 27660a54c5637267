/* The control groups that this process is in, of both versions, and what they count. */
#ifndef CORE_CGROUP_H
#define CORE_CGROUP_H

#include <stdbool.h>

#include "buf.h"

/* Calls fn for the process's group and those above it, innermost first, in each hierarchy, with the group's
 * directory ("/sys/fs/cgroup/…", which may not be there) until it returns false, which ends that hierarchy.
 * `root`: descriptor of the directory that is "/". Where one is not there it has no limits: without a
 * namespace the path is the host's, while what is mounted begins with the container's own group. */
void cgroup_each(int root, bool (*fn)(void *arg, int root, const char *group), void *arg);

/* Text of a group's file; false when it can't be read. Release `text` in any case. */
bool cgroup_read(int root, const char *group, const char *file, struct buf *text);

/* How many processes of this one's own groups the out-of-memory killer has taken; 0 also where that can't be
 * read. Only differences mean something. */
unsigned long long cgroup_oom_kills(void);

#endif
