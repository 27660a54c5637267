#include "ipc.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "dir_read.h"
#include "io.h"

#define BACKLOG 1024

#define ROOT_TRIES 100 /* with a millisecond between: "/" is always there, but memory may be short */

/* ".DEV-INO": computed once, "/" doesn't change under a process. */
static const char *root(void)
{
    static char text[40];
    struct stat st = {0};
    if (!*text) {
        for (int i = 0; i < ROOT_TRIES && stat("/", &st) < 0; i++)
            usleep(1000);
        snprintf(text, sizeof text, ".%llx-%llx", (unsigned long long)st.st_dev,
                 (unsigned long long)st.st_ino);
    }
    return text;
}

/* ".BUILD.DEV-INO" */
static const char *suffix(void)
{
    static char text[64];
    if (!*text)
        snprintf(text, sizeof text, ".%s%s", toolbox_build_id, root());
    return text;
}

int ipc_name_in(char name[IPC_NAME_MAX], const char *owner, const char *build)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
    size_t n = strlen(owner);
    if (n == 0 || strspn(owner, allowed) != n || n + strlen(suffix()) >= IPC_NAME_MAX) {
        errno = ENOENT;
        return -1;
    }
    snprintf(name, IPC_NAME_MAX, "%s.%s%s", owner, build, root());
    return 0;
}

int ipc_name(char name[IPC_NAME_MAX], const char *owner)
{
    return ipc_name_in(name, owner, toolbox_build_id);
}

static struct sockaddr_un address(const char *name)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    _Static_assert(sizeof a.sun_path > 1 + IPC_NAME_MAX, "names fit with a dot in front");
    snprintf(a.sun_path, sizeof a.sun_path, "%s", name);
    return a;
}

static int home = -1;

void ipc_stay_in(int dirfd)
{
    home = dirfd;
}

/* bind or connect with the directory as working directory, and back. Where that may not be entered (a
 * container's may be root's own), "/" is as good, and this directory would not be. */
static int in_directory(int dirfd, int (*call)(int, const struct sockaddr *, socklen_t), int fd,
                        const char *name)
{
    struct sockaddr_un a = address(name);
    if (dirfd == home)
        return call(fd, (struct sockaddr *)&a, sizeof a);
    int back FD_AUTO = openat(AT_FDCWD, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fchdir(dirfd) < 0)
        return -1;
    int result = call(fd, (struct sockaddr *)&a, sizeof a);
    int saved = errno;
    if ((back < 0 || fchdir(back) < 0) && chdir("/") < 0 && result == 0)
        return -1;
    errno = saved;
    return result;
}

/* With a dot in front: no owner's. */
int ipc_hidden_name(char name[1 + IPC_NAME_MAX], const char *owner)
{
    name[0] = '.';
    return ipc_name(name + 1, owner);
}

void ipc_unlink_hidden(int dirfd, const char *owner)
{
    char name[1 + IPC_NAME_MAX];
    if (ipc_hidden_name(name, owner) == 0)
        unlinkat(dirfd, name, 0);
}

int ipc_listen_hidden(int dirfd, const char *owner, struct err *err)
{
    char name[1 + IPC_NAME_MAX];
    if (ipc_hidden_name(name, owner) < 0)
        return err_set(err, ERR_INTERNAL, "'%s' is no name for a socket", owner);
    unlinkat(dirfd, name, 0); /* what a killed one leaves is cleared by the next */
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return err_sys(err, ERR_TOOL, errno, "cannot make a socket");
    mode_t mask = umask(0177);
    int failed = in_directory(dirfd, bind, fd, name) < 0 ? errno : 0;
    umask(mask);
    if (!failed && listen(fd, BACKLOG) < 0) {
        failed = errno;
        unlinkat(dirfd, name, 0);
    }
    if (!failed)
        return fd;
    close(fd);
    return err_sys(err, ERR_TOOL, failed, "cannot listen at %s", name);
}

int ipc_show(int dirfd, const char *hidden, const char *owner, struct err *err)
{
    char from[1 + IPC_NAME_MAX], to[IPC_NAME_MAX];
    if (ipc_hidden_name(from, hidden) < 0 || ipc_name(to, owner) < 0)
        return err_set(err, ERR_INTERNAL, "'%s' is no name for a socket", owner);
    return renameat(dirfd, from, dirfd, to) == 0 ? 0
                                                 : err_sys(err, ERR_TOOL, errno, "cannot listen at %s", to);
}

void ipc_hide(int dirfd, const char *owner, const char *hidden)
{
    char from[IPC_NAME_MAX], to[1 + IPC_NAME_MAX];
    if (ipc_name(from, owner) == 0 && ipc_hidden_name(to, hidden) == 0)
        renameat(dirfd, from, dirfd, to);
}

bool ipc_is_hidden(int dirfd, const char *hidden)
{
    char name[1 + IPC_NAME_MAX];
    struct stat st;
    return ipc_hidden_name(name, hidden) == 0 && fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

int ipc_listen_again(int fd)
{
    return listen(fd, BACKLOG);
}

void ipc_refuse_queued(int fd)
{
    for (int one; (one = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0;)
        close(one);
}

int ipc_listen(int dirfd, const char *owner, struct err *err)
{
    int fd = ipc_listen_hidden(dirfd, owner, err);
    if (fd >= 0 && ipc_show(dirfd, owner, owner, err) < 0) {
        ipc_unlink_hidden(dirfd, owner);
        io_close(&fd);
    }
    return fd;
}

int ipc_peer(int fd, pid_t *pid, uid_t *uid)
{
    struct ucred c;
    socklen_t n = sizeof c;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &c, &n) < 0)
        return -1;
    if (c.pid == 0) {
        errno = EPERM;
        return -1;
    }
    *pid = c.pid;
    *uid = c.uid;
    return 0;
}

int ipc_connect_file(int dirfd, const char *name, int wait_s)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | (wait_s > 0 ? 0 : SOCK_NONBLOCK), 0);
    if (fd < 0)
        return -1;
    struct timeval wait = {.tv_sec = wait_s};
    if (wait_s > 0)
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait);
    pid_t pid;
    uid_t uid;
    if (in_directory(dirfd, connect, fd, name) < 0 || ipc_peer(fd, &pid, &uid) < 0) {
        io_close(&fd);
    } else if (uid != geteuid()) {
        io_close(&fd);
        errno = EPERM;
    }
    return fd;
}

int ipc_connect(int dirfd, const char *owner, int wait_s)
{
    char name[IPC_NAME_MAX];
    return ipc_name(name, owner) < 0 ? -1 : ipc_connect_file(dirfd, name, wait_s);
}

int ipc_find(struct place *p, const char *owner)
{
    struct buf path BUF_AUTO = BUF_INIT;
    for (unsigned n = 0; place_candidate(n, &path); n++) {
        if (place_enter(p, path.data, false, NULL) < 0)
            continue;
        int fd = ipc_connect(p->fd, owner, IPC_WAIT_S);
        if (fd >= 0)
            return fd;
        place_release(p);
    }
    return -1;
}

bool ipc_exists(int dirfd, const char *owner)
{
    char name[IPC_NAME_MAX];
    struct stat st;
    return ipc_name(name, owner) == 0 && fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

void ipc_unlink(int dirfd, const char *owner)
{
    char name[IPC_NAME_MAX];
    if (ipc_name(name, owner) == 0)
        unlinkat(dirfd, name, 0);
}

/* Of this build and container. */
static bool is_own(const char *name)
{
    size_t n = strlen(name), tail = strlen(suffix());
    return n > tail && strcmp(name + n - tail, suffix()) == 0;
}

/* Of another build, in this container: OWNER.BUILD.DEV-INO. */
static bool is_others(const char *name)
{
    const size_t digits = BUILD_ID_SIZE - 1;
    const char *end = strrchr(name, '.');
    return !is_own(name) && strlen(name) < IPC_NAME_MAX && end && strcmp(end, root()) == 0 &&
           end > name + digits + 1 && end[-1 - (ptrdiff_t)digits] == '.' &&
           strspn(end - digits, "0123456789abcdef") == digits;
}

bool ipc_is_file(const char *name)
{
    size_t n = strlen(name), end = strlen(root());
    return n > end && strcmp(name + n - end, root()) == 0;
}

bool ipc_other_build(const char *name, char build[BUILD_ID_SIZE])
{
    if (!is_others(name))
        return false;
    snprintf(build, BUILD_ID_SIZE, "%.*s", BUILD_ID_SIZE - 1, strrchr(name, '.') - (BUILD_ID_SIZE - 1));
    return true;
}

bool ipc_split(const char *name, char owner[IPC_NAME_MAX], char build[BUILD_ID_SIZE])
{
    if (*name == '.' || !ipc_other_build(name, build))
        return false;
    const char *id = strrchr(name, '.') - (BUILD_ID_SIZE - 1);
    snprintf(owner, IPC_NAME_MAX, "%.*s", (int)(id - 1 - name), name);
    return true;
}

static void each_name(int dirfd, bool (*wanted)(const char *name), void (*fn)(void *arg, const char *name),
                      void *arg)
{
    DIR *dir DIR_AUTO = dir_read_again(dirfd);
    for (const char *name; (name = dir_next(dir));)
        if (wanted(name))
            fn(arg, name);
}

struct visit {
    void (*fn)(void *arg, const char *owner);
    void *arg;
};

static void visit(void *arg, const char *name)
{
    const struct visit *v = arg;
    char owner[IPC_NAME_MAX], again[IPC_NAME_MAX];
    if (strlen(name) >= IPC_NAME_MAX)
        return;
    snprintf(owner, sizeof owner, "%.*s", (int)(strlen(name) - strlen(suffix())), name);
    if (ipc_name(again, owner) == 0)
        v->fn(v->arg, owner);
}

bool ipc_is_keeper(const char *owner)
{
    return strcmp(owner, IPC_SERVER) != 0 && strncmp(owner, IPC_TRANSIENT, strlen(IPC_TRANSIENT)) != 0;
}

void ipc_each(int dirfd, void (*fn)(void *arg, const char *owner), void *arg)
{
    struct visit v = {fn, arg};
    each_name(dirfd, is_own, visit, &v);
}

struct file_visit {
    const char *prefix;
    void (*fn)(void *arg, const char *name);
    void *arg;
};

static void visit_file(void *arg, const char *name)
{
    const struct file_visit *v = arg;
    if (strncmp(name, v->prefix, strlen(v->prefix)) == 0)
        v->fn(v->arg, name);
}

void ipc_each_file(int dirfd, const char *prefix, void (*fn)(void *arg, const char *name), void *arg)
{
    struct file_visit v = {prefix, fn, arg};
    each_name(dirfd, is_own, visit_file, &v);
}

void ipc_each_other(int dirfd, void (*fn)(void *arg, const char *name), void *arg)
{
    each_name(dirfd, is_others, fn, arg);
}

static void clear(void *arg, const char *name)
{
    if (strncmp(name, IPC_SERVER ".", sizeof IPC_SERVER) != 0)
        unlinkat(*(int *)arg, name, 0);
}

void ipc_clear(int dirfd)
{
    each_name(dirfd, is_own, clear, &dirfd);
    ipc_unlink(dirfd, IPC_SERVER);
}
