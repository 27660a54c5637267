#include "net.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "io.h"

int net_wait(int fd, short events, int timeout_ms)
{
    long long end = now_ms() + timeout_ms;
    for (;;) {
        long long left = end - now_ms();
        struct pollfd p = {.fd = fd, .events = events};
        int n = poll(&p, 1, left > 0 ? (int)left : 0);
        if (n > 0)
            return 0;
        if (n == 0) {
            errno = ETIMEDOUT;
            return -1;
        }
        if (errno != EINTR)
            return -1;
    }
}

static int connected(int fd, const struct addrinfo *address, int timeout_ms)
{
    int failed;
    socklen_t size = sizeof failed;
    if (connect(fd, address->ai_addr, address->ai_addrlen) == 0)
        return 0;
    if (errno != EINPROGRESS || net_wait(fd, POLLOUT, timeout_ms) < 0 ||
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &failed, &size) < 0)
        return -1;
    errno = failed;
    return failed ? -1 : 0;
}

static int connect_to(const struct addrinfo *address, int timeout_ms)
{
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && connected(fd, address, timeout_ms) < 0)
        io_close(&fd);
    return fd;
}

int net_connect(const char *host, const char *port, int timeout_ms, struct err *err)
{
    const struct addrinfo want = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
    int status = getaddrinfo(host, port, &want, &found), fd = -1;
    if (status == EAI_AGAIN)
        return err_set(err, ERR_TOOL, "can't find out the address of %s: no name server answers", host);
    if (status != 0)
        return err_set(err, ERR_TOOL, "there is no host '%s' (%s)", host, gai_strerror(status));
    for (const struct addrinfo *one = found; one && fd < 0; one = one->ai_next)
        fd = connect_to(one, timeout_ms);
    int failed = errno;
    freeaddrinfo(found);
    return fd >= 0 ? fd : err_sys(err, ERR_TOOL, failed, "can't connect to %s port %s", host, port);
}
