#include "proxy_doors.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "io.h"
#include "proxy_address.h"
#include "applet.h"
#include "commands/exec/dial.h"

/* -1: no port. 0 lets the system choose. */
static int port_number(const char *text)
{
    char *end;
    errno = 0;
    unsigned long n = strtoul(text, &end, 10);
    return *text < '0' || *text > '9' || *end || errno || n > 65535 ? -1 : (int)n;
}

/* A port is had also where nobody gets to it. Nothing is sent: a datagram's socket looks for a way only. */
static int can_be_reached(const struct sockaddr_in *address)
{
    int fd FD_AUTO = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    return fd < 0 ? 0 : connect(fd, (const struct sockaddr *)address, sizeof *address);
}

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_un path;
};

/* Listens on the loopback's address of that family; *port becomes the one that it is. -1 with errno. */
static int listen_at(int family, int *port)
{
    union address a = {.v4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof a.v4;
    int on = 1, fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    if (family == AF_INET6) {
        a = (union address){.v6 = {.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback}};
        size = sizeof a.v6;
    }
    a.v4.sin_port = htons((uint16_t)*port); /* at the same place in both */
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, &a.any, size) < 0 || listen(fd, SOMAXCONN) < 0 || getsockname(fd, &a.any, &size) < 0 ||
        (family == AF_INET && can_be_reached(&a.v4) < 0)) {
        io_close(&fd);
        return -1;
    }
    *port = ntohs(a.v4.sin_port);
    return fd;
}

int proxy_doors_open_locally(struct doors *d, const char *port_word)
{
    int port = port_number(port_word);
    if (port < 0)
        return usage_error("model_proxy", "no port: '%s'; give a number from 0 to 65535", port_word);
    d->fds[0] = listen_at(AF_INET, &port);
    const char *host = "127.0.0.1";
    if (d->fds[0] >= 0) {
        d->n = 1;
        d->fds[1] = listen_at(AF_INET6, &port);
        d->n += d->fds[1] >= 0;
        if (d->fds[1] >= 0 || errno != EADDRINUSE) /* most often there is no such address */
            return EXIT_OK;
        host = "[::1]";
    }
    return applet_failed("model_proxy", "can't listen on %s:%d: %s%s", host, port, err_text(errno),
                         errno == EADDRINUSE    ? "; give another with --port (0: any that is free)"
                         : errno == ENETUNREACH ? "; the loopback interface is down (ip link set lo up)"
                                                : "");
}

int proxy_doors_open(struct doors *d, const char *const *places, size_t n)
{
    struct err err;
    for (; d->n < n; d->n++) {
        d->fds[d->n] = dial_listen(places[d->n], &err);
        if (d->fds[d->n] < 0)
            return applet_failed("model_proxy", "%s", err.msg);
    }
    return EXIT_OK;
}

void proxy_doors_tell(const struct doors *d, bool locally)
{
    for (size_t i = 0; i < (locally ? 1 : d->n); i++) {
        struct buf text BUF_AUTO = BUF_INIT;
        proxy_put_address(d->fds[i], &text);
        printf("Server running on %s\n", buf_str(&text));
    }
    if (fflush(stdout) != 0) { /* nobody reads it: the proxy serves all the same */
        clearerr(stdout);
    }
}
