/* Namespaces: everything read-only but what may be written to, which is closed to changes of modes, owners
 * and times as well; files that are hidden; a network of one's own. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <net/if.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "confine_internal.h"
#include "io.h"

#ifndef SYS_open_tree
#define SYS_open_tree 428
#define SYS_move_mount 429
#endif
#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif

#define TREE_CLONE 1
#define TREE_RECURSIVE 0x8000 /* AT_RECURSIVE */
#define MOVE_FROM_EMPTY 4
#define ATTR_READ_ONLY 1ULL

enum { WRITABLE_MAX = 32 };

struct mount_attributes {
    uint64_t set, clear, propagation, userns;
};

static bool write_line(const char *path, const char *line)
{
    int fd FD_AUTO = open(path, O_WRONLY | O_CLOEXEC);
    return fd >= 0 && write(fd, line, strlen(line)) > 0;
}

/* As the same user there. */
static bool enter_user_namespace(int flags)
{
    char line[64];
    uid_t uid = geteuid();
    gid_t gid = getegid();
    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0); /* who became a user isn't, and its files of /proc are root's */
    if (unshare(CLONE_NEWUSER | flags) < 0)
        return false;
    write_line("/proc/self/setgroups", "deny");
    snprintf(line, sizeof line, "%u %u 1", uid, uid);
    bool done = write_line("/proc/self/uid_map", line);
    snprintf(line, sizeof line, "%u %u 1", gid, gid);
    return write_line("/proc/self/gid_map", line) && done;
}

/* There is no way back from one that is of no use: some systems give no rights in it. Root without the right
 * to others would be without its users there. */
static bool has_user_namespaces(int flags)
{
    int status = 0;
    pid_t pid = geteuid() == 0 ? -1 : fork();
    if (pid == 0)
        _exit(enter_user_namespace(flags) ? 0 : 1);
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

static bool enter_namespaces(int flags)
{
    return unshare(flags) == 0 || (has_user_namespaces(flags) && enter_user_namespace(flags));
}

static bool bring_loopback_up(void)
{
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    int fd FD_AUTO = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    return fd >= 0 && ioctl(fd, SIOCSIFFLAGS, &request) == 0;
}

/* The trees that stay writable are taken as they are, before all is made read-only, and put over it. */
static bool make_read_only(const struct confine *c)
{
    struct mount_attributes read_only = {.set = ATTR_READ_ONLY};
    int trees[WRITABLE_MAX];
    char **paths = c->paths[CONFINE_WRITE];
    size_t n = 0;
    for (; paths && paths[n] && n < WRITABLE_MAX; n++)
        trees[n] = (int)syscall(SYS_open_tree, AT_FDCWD, paths[n], TREE_CLONE | TREE_RECURSIVE | O_CLOEXEC);
    bool done = (!paths || !paths[n]) &&
                syscall(SYS_mount_setattr, AT_FDCWD, "/", TREE_RECURSIVE, &read_only, sizeof read_only) == 0;
    for (size_t i = 0; i < n; i++) {
        if (done && trees[i] >= 0 &&
            syscall(SYS_move_mount, trees[i], "", AT_FDCWD, paths[i], MOVE_FROM_EMPTY) < 0)
            done = false;
        io_close(&trees[i]);
    }
    return done;
}

static bool cover(const char *path)
{
    struct stat st;
    if (stat(path, &st) < 0)
        return errno == ENOENT || errno == ENOTDIR || errno == EACCES;
    if (S_ISDIR(st.st_mode))
        return mount("none", path, "tmpfs", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=555") == 0;
    return mount("/dev/null", path, NULL, MS_BIND, NULL) == 0;
}

static bool cover_hidden(const struct confine *c)
{
    bool done = true;
    for (char **p = c->paths[CONFINE_HIDE]; p && *p; p++)
        done = cover(*p) && done;
    return done;
}

/* Who reaches our sockets has things done that he may not do himself. */
static bool hides_place(const struct confine *c)
{
    return c->place && (!c->wanted[CONFINE_NETWORK] || (c->network & CONFINE_NET_UNIX));
}

static int set_up(const struct confine *c, struct err *err)
{
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return err_sys(err, ERR_TOOL, errno, "cannot confine: mounts cannot be made private");
    if (c->wanted[CONFINE_TMP] && mount("none", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777") == 0)
        confine_note(c, CONFINE_TMP, CONFINE_BY_MOUNTS);
    if (c->wanted[CONFINE_WRITE]) {
        if (make_read_only(c)) {
            confine_note(c, CONFINE_WRITE, CONFINE_BY_MOUNTS);
            confine_note(c, CONFINE_METADATA, CONFINE_BY_MOUNTS);
        }
    }
    if (c->wanted[CONFINE_HIDE] && cover_hidden(c))
        confine_note(c, CONFINE_HIDE, CONFINE_BY_MOUNTS);
    if (c->place) /* a policy stands there, too */
        cover(c->place);
    return 0;
}

/* Sockets without a name in the file system are the network's as well: those of others are kept out where
 * Landlock can't do it. */
static bool wants_own_network(const struct confine *c)
{
    return c->wanted[CONFINE_NETWORK] &&
           ((c->network & CONFINE_NET_LOOPBACK) || (c->network == CONFINE_NET_UNIX && c->report->abi < 6));
}

int confine_namespaces(const struct confine *c, struct err *err)
{
    bool mounts =
        c->wanted[CONFINE_WRITE] || c->wanted[CONFINE_HIDE] || c->wanted[CONFINE_TMP] || hides_place(c);
    bool network = wants_own_network(c);
    int flags = (mounts ? CLONE_NEWNS : 0) | (network ? CLONE_NEWNET : 0);
    if (flags == 0 || !enter_namespaces(flags | CLONE_NEWIPC))
        return 0;
    if (network && (!(c->network & CONFINE_NET_LOOPBACK) || bring_loopback_up()))
        confine_note(c, CONFINE_NETWORK, CONFINE_BY_NETNS);
    return mounts ? set_up(c, err) : 0;
}

/* A directory that was entered before lies on what was there before. */
void confine_reenter(void)
{
    char here[PATH_MAX];
    if (!getcwd(here, sizeof here) || chdir(here) < 0) {
        /* it is gone: nothing can be made in it either */
    }
}
