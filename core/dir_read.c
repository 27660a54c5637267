#include "dir_read.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>

#include "io.h"

DIR *dir_read(int fd)
{
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir)
        io_close(&fd);
    return dir;
}

DIR *dir_read_again(int fd)
{
    return dir_read(openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

const char *dir_next(DIR *dir)
{
    const struct dirent *entry;
    while (dir && (entry = readdir(dir)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            return entry->d_name;
    return NULL;
}

void dir_read_end(DIR **dir)
{
    int saved = errno;
    if (*dir)
        closedir(*dir);
    errno = saved;
}
