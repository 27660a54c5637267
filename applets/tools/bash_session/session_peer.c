#include "session_peer.h"

#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "buf.h"
#include "dir_read.h"
#include "io.h"

#define LISTENS " 0A " /* a TCP socket's state */

/* How many descriptors of the process are this object. */
static int count_own(pid_t pid, const struct stat *which)
{
    char path[40];
    struct stat st;
    const char *name;
    int n = 0;
    snprintf(path, sizeof path, "/proc/%ld/fd", (long)pid);
    DIR *dir DIR_AUTO = opendir(path);
    while ((name = dir_next(dir)))
        n += fstatat(dirfd(dir), name, &st, 0) == 0 && st.st_ino == which->st_ino &&
             st.st_dev == which->st_dev;
    return n;
}

/* What the kernel says of a Unix socket, by its inode: -1 where there is none of that number, else the other
 * end's, 0 for none. */
static long long unix_peer(ino_t inode)
{
    struct {
        struct nlmsghdr head;
        struct unix_diag_req ask;
    } question = {.head = {.nlmsg_len = sizeof question,
                           .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                           .nlmsg_flags = NLM_F_REQUEST},
                  .ask = {.sdiag_family = AF_UNIX,
                          .udiag_states = ~0u,
                          .udiag_ino = (unsigned)inode,
                          .udiag_show = UDIAG_SHOW_PEER,
                          .udiag_cookie = {~0u, ~0u}}};
    _Alignas(struct nlmsghdr) char answer[512];
    int fd FD_AUTO = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    if (fd < 0 || send(fd, &question, sizeof question, 0) < 0)
        return -1;
    ssize_t n = recv(fd, answer, sizeof answer, 0);
    const struct nlmsghdr *head = (const void *)answer;
    if (n < (ssize_t)NLMSG_LENGTH(sizeof(struct unix_diag_msg)) || head->nlmsg_type != SOCK_DIAG_BY_FAMILY)
        return -1;
    const struct rtattr *at =
        (const void *)((const char *)NLMSG_DATA(head) + NLMSG_ALIGN(sizeof(struct unix_diag_msg)));
    for (int left = (int)n - (int)((const char *)at - answer); RTA_OK(at, left); at = RTA_NEXT(at, left))
        if (at->rta_type == UNIX_DIAG_PEER)
            return *(const unsigned *)RTA_DATA(at);
    return 0;
}

/* It is in one of the process's lists of TCP sockets, and waits for others to come. */
static bool listens(pid_t pid, const char *list, ino_t inode)
{
    char path[40], end[32];
    struct buf text BUF_AUTO = BUF_INIT;
    snprintf(path, sizeof path, "/proc/%ld/net/%s", (long)pid, list);
    snprintf(end, sizeof end, " %llu ", (unsigned long long)inode);
    if (io_read_file(AT_FDCWD, path, &text) < 0)
        return false;
    char *save, *line = text.data ? strtok_r(text.data, "\n", &save) : NULL;
    for (; line; line = strtok_r(NULL, "\n", &save))
        if (strstr(line, end))
            return strstr(line, LISTENS) != NULL;
    return false;
}

static bool socket_is_anothers(pid_t pid, const struct stat *st)
{
    long long peer = unix_peer(st->st_ino);
    struct stat other = {.st_dev = st->st_dev, .st_ino = (ino_t)peer};
    if (peer < 0)
        return !listens(pid, "tcp", st->st_ino) && !listens(pid, "tcp6", st->st_ino);
    return peer > 0 && count_own(pid, &other) == 0;
}

bool peer_is_another(const void *arg, pid_t pid, unsigned long long fd)
{
    char path[48];
    struct stat st;
    (void)arg;
    snprintf(path, sizeof path, "/proc/%ld/fd/%llu", (long)pid, fd);
    if (stat(path, &st) < 0)
        return false;
    if (S_ISFIFO(st.st_mode))
        return count_own(pid, &st) < 2;
    return S_ISSOCK(st.st_mode) && socket_is_anothers(pid, &st);
}
