/* The names in a directory. */
#ifndef CORE_DIR_READ_H
#define CORE_DIR_READ_H

#include <dirent.h>

/* Takes fd (-1: none). NULL with errno. */
DIR *dir_read(int fd);
/* From the beginning, of a directory whose descriptor stays the caller's. */
DIR *dir_read_again(int fd);

/* The next name but "." and "..". NULL: that was all, or there is no `dir`. */
const char *dir_next(DIR *dir);

/* For a cleanup attribute; keeps errno. */
void dir_read_end(DIR **dir);
#define DIR_AUTO __attribute__((cleanup(dir_read_end)))

#endif
