#include "proxy_address.h"

#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_un path;
};

static void address_of(int fd, union address *a)
{
    socklen_t size = sizeof *a;
    memset(a, 0, sizeof *a);
    getsockname(fd, &a->any, &size);
}

void proxy_put_address(int fd, struct buf *out)
{
    union address a;
    char text[INET6_ADDRSTRLEN];
    address_of(fd, &a);
    if (a.any.sa_family == AF_UNIX)
        buf_addf(out, "unix:%s", a.path.sun_path);
    else if (a.any.sa_family == AF_INET6)
        buf_addf(out, "http://[%s]:%d", inet_ntop(AF_INET6, &a.v6.sin6_addr, text, sizeof text),
                 ntohs(a.v6.sin6_port));
    else
        buf_addf(out, "http://%s:%d", inet_ntop(AF_INET, &a.v4.sin_addr, text, sizeof text),
                 ntohs(a.v4.sin_port));
}

bool proxy_is_local(int fd)
{
    union address a;
    address_of(fd, &a);
    return a.any.sa_family == AF_UNIX ||
           (a.any.sa_family == AF_INET && ntohl(a.v4.sin_addr.s_addr) >> 24 == 127) ||
           (a.any.sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&a.v6.sin6_addr));
}
