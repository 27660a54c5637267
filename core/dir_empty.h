/* Emptying a directory. */
#ifndef CORE_DIR_EMPTY_H
#define CORE_DIR_EMPTY_H

/* Removes all that is in the directory, as far as it can be, and closes its descriptor (-1: nothing).
 * Symbolic links are not followed, and no other file system is entered. Who may write there can go on making
 * files: after limit_ms (0: no limit) what is left stays. */
void dir_empty(int fd, int limit_ms);

#endif
