/* Opening files below a directory that somebody else has filled: no link leads out of it.
 *
 * "/" and ".." in links are taken as they would be after a chroot. Where the kernel can't do that (before
 * 5.6, or under a filter), links on the way are refused with ELOOP. */
#ifndef INJECT_OPEN_IN_H
#define INJECT_OPEN_IN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* As openat, close-on-exec; the last part of the path is never followed where O_NOFOLLOW is given. */
int open_in(int root, const char *path, int flags, mode_t mode);

/* Opens a directory, made with all that is missing on the way (mode 0755, the last 0700). *made is the length
 * of the path of the topmost directory that was made, 0: none. -1 with errno. */
int open_in_made(int root, const char *path, size_t *made);

#endif
