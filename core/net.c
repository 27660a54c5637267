#include "net.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "buf.h"
#include "io.h"

#define ADDRESSES_MAX 16

struct address {
    int family;
    socklen_t size;
    struct sockaddr_storage at;
};

struct addresses {
    int status; /* of getaddrinfo */
    size_t n;
    struct address list[ADDRESSES_MAX];
};

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

/* ---- addresses ---- */

static void look_up(const char *host, const char *port, struct addresses *found)
{
    const struct addrinfo want = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *first = NULL;
    found->status = getaddrinfo(host, port, &want, &first);
    for (const struct addrinfo *one = first; one && found->n < ADDRESSES_MAX; one = one->ai_next) {
        struct address *a = &found->list[found->n++];
        a->family = one->ai_family;
        a->size = one->ai_addrlen;
        memcpy(&a->at, one->ai_addr, one->ai_addrlen);
    }
    if (first)
        freeaddrinfo(first);
}

/* getaddrinfo has no deadline of its own, and how long it waits stands in the machine's files: so it runs in
 * a process that can be ended. */
static int look_up_within(const char *host, const char *port, int timeout_ms, struct addresses *found)
{
    int ends[2];
    struct buf text BUF_AUTO = BUF_INIT;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -1;
    pid_t pid = fork();
    if (pid == 0) {
        memset(found, 0, sizeof *found);
        look_up(host, port, found);
        _exit(io_write_all(ends[1], found, sizeof *found) < 0);
    }
    close(ends[1]);
    int result = pid < 0 ? -1 : io_read_within(ends[0], timeout_ms, &text), why = errno;
    close(ends[0]);
    if (result < 0 && pid > 0)
        kill(pid, SIGKILL);
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    errno = result < 0 ? why : ECHILD;
    if (result < 0 || text.len != sizeof *found)
        return -1;
    memcpy(found, text.data, sizeof *found);
    return 0;
}

static int find_addresses(const char *host, const char *port, int timeout_ms, struct addresses *found,
                          struct err *err)
{
    static const char cannot[] = "can't find out the address of";
    if (look_up_within(host, port, timeout_ms, found) < 0)
        return errno == ETIMEDOUT
                   ? err_set(err, ERR_TOOL, "%s %s: no name server has answered in time", cannot, host)
                   : err_sys(err, ERR_TOOL, errno, "%s %s", cannot, host);
    if (found->status == EAI_AGAIN)
        return err_set(err, ERR_TOOL, "%s %s: no name server answers", cannot, host);
    if (found->status != 0)
        return err_set(err, ERR_TOOL, "there is no host '%s' (%s)", host, gai_strerror(found->status));
    return 0;
}

/* ---- connections ---- */

static int connected(int fd, const struct address *address, int timeout_ms)
{
    int failed;
    socklen_t size = sizeof failed;
    if (connect(fd, (const struct sockaddr *)&address->at, address->size) == 0)
        return 0;
    if (errno != EINPROGRESS || net_wait(fd, POLLOUT, timeout_ms) < 0 ||
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &failed, &size) < 0)
        return -1;
    errno = failed;
    return failed ? -1 : 0;
}

static int connect_to(const struct address *address, int timeout_ms)
{
    int fd = socket(address->family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && connected(fd, address, timeout_ms) < 0)
        io_close(&fd);
    return fd;
}

int net_connect_to(const char *host, const char *port, net_takes_fn takes, const void *arg, int timeout_ms,
                   struct err *err)
{
    struct addresses found = {0};
    int fd = -1;
    bool taken = false;
    if (find_addresses(host, port, timeout_ms, &found, err) < 0)
        return -1;
    for (size_t i = 0; i < found.n && fd < 0; i++) {
        const struct sockaddr *at = (const struct sockaddr *)&found.list[i].at;
        if (takes && !takes(arg, at))
            continue;
        taken = true;
        fd = connect_to(&found.list[i], timeout_ms);
    }
    if (!taken && found.n > 0)
        return err_set(err, ERR_PARAMS, "no address of %s may be connected to", host);
    return fd >= 0 ? fd : err_sys(err, ERR_TOOL, errno, "can't connect to %s port %s", host, port);
}

int net_connect(const char *host, const char *port, int timeout_ms, struct err *err)
{
    return net_connect_to(host, port, NULL, NULL, timeout_ms, err);
}
