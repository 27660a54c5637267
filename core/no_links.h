/* Opening what a path names in which there are no links: none is followed, on the way or at the end, whoever
 * puts one there meanwhile. So what was found out of the path's text holds for what is opened. */
#ifndef CORE_NO_LINKS_H
#define CORE_NO_LINKS_H

/* Opens it, from the directory `dir` (AT_FDCWD) or from / as the path says; close-on-exec. Nothing is made.
 * -1 with errno: ELOOP or ENOTDIR where a link is. */
int no_links_open(int dir, const char *path, int flags);

/* The same part by part: for kernels that don't know how, and for a path of any length. */
int no_links_walk(int dir, const char *path, int flags);

#endif
