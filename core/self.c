#include "self.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io.h"
#include "mem.h"

static const char link_to_self[] = "/proc/self/exe";

static char *started_as(void)
{
    const char *name = (const char *)getauxval(AT_EXECFN);
    if (!name || *name == '/')
        return name ? mem_strdup(name) : NULL;
    char cwd[PATH_MAX];
    return getcwd(cwd, sizeof cwd) ? mem_printf("%s/%s", cwd, name) : mem_strdup(name);
}

char *self_path(void)
{
    char path[PATH_MAX];
    ssize_t n = readlink(link_to_self, path, sizeof path);
    return n > 0 && (size_t)n < sizeof path ? mem_dup(path, (size_t)n) : started_as();
}

int self_open(void)
{
    struct stat st;
    int fd = open(link_to_self, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        char *path MEM_AUTO = self_path();
        fd = path ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) : -1;
    }
    if (fd >= 0 && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))) {
        io_close(&fd);
        errno = EINVAL;
    }
    return fd;
}
