#include "host/inject/open_in.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "io.h"
#include "mem.h"

#ifndef SYS_openat2
#define SYS_openat2 437 /* on every architecture */
#endif

/* One directory after the other, none of which may be a link. */
static int walk(int root, const char *path, int flags, mode_t mode)
{
    int at FD_AUTO = openat(root, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    for (path += strspn(path, "/"); at >= 0; path += strspn(path, "/")) {
        size_t n = strcspn(path, "/");
        char *part MEM_AUTO = mem_dup(path, n);
        path += n;
        if (strcmp(part, "..") == 0)
            return errno = ELOOP, -1;
        if (!path[strspn(path, "/")])
            return openat(at, n > 0 ? part : ".", flags | O_NOFOLLOW | O_CLOEXEC, mode);
        int next = openat(at, part, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (next < 0 && errno == ENOTDIR)
            errno = ELOOP;
        io_close(&at);
        at = next;
    }
    return -1;
}

int open_in(int root, const char *path, int flags, mode_t mode)
{
    struct open_how how = {.flags = (unsigned)(flags | O_CLOEXEC),
                           .mode = flags & O_CREAT ? mode : 0,
                           .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
    int fd = -1;
    do
        fd = (int)syscall(SYS_openat2, root, path, &how, sizeof how);
    while (fd < 0 && (errno == EINTR || errno == EAGAIN)); /* EAGAIN: something was moved meanwhile */
    return fd < 0 && (errno == ENOSYS || errno == EPERM || errno == EINVAL) ? walk(root, path, flags, mode)
                                                                            : fd;
}
