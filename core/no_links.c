#include "no_links.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "io.h"
#include "mem.h"

#ifndef SYS_openat2
#define SYS_openat2 437
#endif

int no_links_walk(int dir, const char *path, int flags)
{
    int at FD_AUTO = *path == '/' ? open("/", O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    for (const char *next, *part = path + strspn(path, "/"); *part; part = next) {
        size_t n = strcspn(part, "/");
        char *name MEM_AUTO = mem_dup(part, n);
        next = part + n + strspn(part + n, "/");
        int how = O_NOFOLLOW | O_CLOEXEC | (part[n] ? O_PATH | O_DIRECTORY : flags);
        int fd = openat(at < 0 ? dir : at, name, how);
        if (fd < 0 || !*next)
            return fd;
        io_close(&at);
        at = fd;
    }
    return openat(at < 0 ? dir : at, ".", flags | O_CLOEXEC);
}

/* Who translates names for the programs that he traces may not know openat2 (proot), and then it opens what
 * has that name outside. */
static bool is_what_it_names(int fd, int dir, const char *path)
{
    struct stat opened, named;
    return fstat(fd, &opened) == 0 && fstatat(dir, path, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
           opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
}

int no_links_open(int dir, const char *path, int flags)
{
    static const uint64_t without_links = 4;
    uint64_t how[3] = {(unsigned)flags | O_CLOEXEC | O_NOFOLLOW, 0, without_links};
    int fd = (int)syscall(SYS_openat2, dir, path, how, sizeof how);
    if (fd >= 0 && is_what_it_names(fd, dir, path))
        return fd;
    io_close(&fd);
    return no_links_walk(dir, path, flags);
}
