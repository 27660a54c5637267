/* Opening files below a directory that somebody else has filled: no link leads out of it.
 *
 * "/" and ".." in links are taken as they would be after a chroot. Where the kernel can't do that (before
 * 5.6, or under a filter), links on the way are refused with ELOOP. */
#ifndef INJECT_OPEN_IN_H
#define INJECT_OPEN_IN_H

#include <sys/types.h>

/* As openat, close-on-exec; the last part of the path is never followed where O_NOFOLLOW is given. */
int open_in(int root, const char *path, int flags, mode_t mode);

#endif
