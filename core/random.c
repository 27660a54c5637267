#include "random.h"

#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include "io.h"

int random_bytes(void *out, size_t n)
{
    if (getrandom(out, n, 0) == (ssize_t)n)
        return 0;
    int fd FD_AUTO = open("/dev/urandom", O_RDONLY | O_CLOEXEC); /* for a kernel without the call */
    return fd >= 0 && read(fd, out, n) == (ssize_t)n ? 0 : -1;
}
