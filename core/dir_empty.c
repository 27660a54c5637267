#include "dir_empty.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEPTH_MAX 64 /* each level holds a descriptor */

static void empty(int fd, dev_t device, int depth)
{
    DIR *d = fdopendir(fd);
    if (!d) {
        close(fd);
        return;
    }
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        struct stat st;
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
            fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        /* a file's number can differ from its directory's on an overlay */
        int inner = S_ISDIR(st.st_mode) && st.st_dev == device && depth < DEPTH_MAX
                        ? openat(dirfd(d), e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
                        : -1;
        if (inner >= 0)
            empty(inner, device, depth + 1);
        unlinkat(dirfd(d), e->d_name, S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0);
    }
    closedir(d);
}

void dir_empty(int fd)
{
    struct stat st;
    if (fd >= 0 && fstat(fd, &st) == 0)
        empty(fd, st.st_dev, 0);
    else if (fd >= 0)
        close(fd);
}
