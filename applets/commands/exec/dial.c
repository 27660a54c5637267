#include "dial.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "io.h"
#include "mem.h"
#include "net.h"

#define TIMEOUT_MS 20000
#define HOST_MAX 256

union address {
    struct sockaddr any;
    struct sockaddr_un path;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

/* One that is being looked for in a process of its own. */
struct dialling {
    dial_fn done;
    void *arg;
    int fd; /* from that process: a descriptor, or why there is none */
    struct loop_source *source;
};

/* Host and port of the words; false: they name none. */
static bool split(const char *where, char host[HOST_MAX], const char **port)
{
    const char *colon = strrchr(where, ':');
    size_t n = colon ? (size_t)(colon - where) : 0;
    *port = colon ? colon + 1 : where;
    if (colon && n > 2 && where[0] == '[' && where[n - 1] == ']') {
        where++;
        n -= 2;
    }
    if (n >= HOST_MAX || (colon && n == 0))
        return false;
    snprintf(host, HOST_MAX, "%.*s", colon ? (int)n : HOST_MAX, colon ? where : "127.0.0.1");
    char *end;
    long number = strtol(*port, &end, 10);
    return **port && !*end && number >= 0 && number < 65536;
}

/* Of what needs no looking up: the size, 0 where it does, -1 where it is nothing. */
static int address_of(const char *where, union address *a)
{
    char host[HOST_MAX];
    const char *port;
    memset(a, 0, sizeof *a);
    if (where[0] == '/') {
        if (strlen(where) >= sizeof a->path.sun_path)
            return -1;
        a->path.sun_family = AF_UNIX;
        memcpy(a->path.sun_path, where, strlen(where) + 1);
        return sizeof a->path;
    }
    if (!split(where, host, &port))
        return -1;
    uint16_t number = htons((uint16_t)strtol(port, NULL, 10));
    if (inet_pton(AF_INET, strcmp(host, "localhost") == 0 ? "127.0.0.1" : host, &a->v4.sin_addr) == 1) {
        a->v4.sin_family = AF_INET;
        a->v4.sin_port = number;
        return sizeof a->v4;
    }
    if (inet_pton(AF_INET6, host, &a->v6.sin6_addr) != 1)
        return 0;
    a->v6.sin6_family = AF_INET6;
    a->v6.sin6_port = number;
    return sizeof a->v6;
}

/* ---- names ---- */

static void send_descriptor(int to, int fd, struct err *why)
{
    char control[CMSG_SPACE(sizeof fd)] = {0};
    struct iovec text = {why, sizeof *why};
    struct msghdr m = {.msg_iov = &text, .msg_iovlen = 1};
    if (fd >= 0) {
        m.msg_control = control;
        m.msg_controllen = sizeof control;
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        *c = (struct cmsghdr){
            .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof fd)};
        memcpy(CMSG_DATA(c), &fd, sizeof fd);
    }
    sendmsg(to, &m, MSG_NOSIGNAL);
}

static _Noreturn void look_up(const char *where, net_takes_fn takes, const void *of, int to)
{
    char host[HOST_MAX];
    const char *port;
    struct err err = {0};
    split(where, host, &port);
    int fd = net_connect_to(host, port, takes, of, TIMEOUT_MS, &err);
    send_descriptor(to, fd, &err);
    _exit(0);
}

static void on_found(void *arg, int events)
{
    struct dialling *d = arg;
    struct err said = {0}, why = {0};
    char control[CMSG_SPACE(sizeof(int))];
    struct iovec text = {&said, sizeof said};
    struct msghdr m = {
        .msg_iov = &text, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    int fd = -1;
    (void)events;
    ssize_t n = recvmsg(d->fd, &m, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&m) : NULL;
    if (c && c->cmsg_type == SCM_RIGHTS)
        memcpy(&fd, CMSG_DATA(c), sizeof fd);
    loop_drop(&d->source);
    close(d->fd);
    if (fd < 0 && (n <= 0 || err_take(&why, &said, (size_t)n) < 0))
        err_set(&why, ERR_TOOL, "the process that was to connect has ended");
    d->done(d->arg, fd, &why);
    free(d);
}

static int start_looking(struct loop *loop, const char *where, net_takes_fn takes, const void *of)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return -1;
    pid_t pid = loop_fork(loop);
    if (pid == 0) {
        io_close_others(&ends[1], 1);
        look_up(where, takes, of, ends[1]);
    }
    close(ends[1]);
    if (pid < 0)
        io_close(&ends[0]);
    return ends[0];
}

void dial_host(struct loop *loop, const char *where, net_takes_fn takes, const void *of, dial_fn done,
               void *arg)
{
    int from = start_looking(loop, where, takes, of);
    struct err err;
    if (from < 0) {
        err_sys(&err, ERR_TOOL, errno, "cannot start a process that connects");
        done(arg, -1, &err);
        return;
    }
    struct dialling *d = mem_zalloc(sizeof *d);
    *d = (struct dialling){done, arg, from, loop_fd(loop, from, LOOP_READ, on_found, d)};
}

void dial(struct loop *loop, const char *where, dial_fn done, void *arg)
{
    union address a;
    struct err err;
    int size = address_of(where, &a);
    if (size == 0) {
        dial_host(loop, where, NULL, NULL, done, arg);
        return;
    }
    int fd = size < 0 ? -1 : socket(a.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && connect(fd, &a.any, (socklen_t)size) < 0 && errno != EINPROGRESS)
        io_close(&fd);
    if (fd < 0)
        err_set(&err, ERR_TOOL, "%s",
                size < 0 ? "that is no port, HOST:PORT or absolute path" : err_text(errno));
    done(arg, fd, &err);
}

int dial_listen(const char *where, struct err *err)
{
    union address a;
    int yes = 1, size = address_of(where, &a);
    if (size <= 0)
        return err_set(err, ERR_TOOL,
                       "cannot listen at '%s': a port, ADDRESS:PORT or an absolute path is wanted", where);
    int fd = socket(a.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && a.any.sa_family != AF_UNIX)
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    mode_t before = umask(0077);
    int result = fd < 0 ? -1 : bind(fd, &a.any, (socklen_t)size), failed = errno;
    umask(before);
    if (result == 0 && listen(fd, SOMAXCONN) == 0)
        return fd;
    failed = result == 0 ? errno : failed;
    io_close(&fd);
    return err_sys(err, ERR_TOOL, failed, "cannot listen at %s", where);
}
