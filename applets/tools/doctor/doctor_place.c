/* What is needed of files and sockets. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <netinet/in.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "doctor.h"
#include "io.h"
#include "ipc.h"
#include "no_links.h"
#include "place.h"

#define FILE_BYTES 65536
#ifndef RENAME_EXCHANGE
#define RENAME_EXCHANGE 2
#endif

static int try_place(struct err *err)
{
    struct place place PLACE_AUTO = PLACE_INIT;
    return place_open(&place, err);
}

/* Two files in the private directory, by number; they go with the process that tries. */
static void name_file(char name[32], int n)
{
    snprintf(name, 32, ".doctor-%ld-%d", (long)getpid(), n);
}

static int make_file(const struct place *place, int n, size_t size, struct err *err)
{
    static const char bytes[4096];
    char name[32];
    name_file(name, n);
    int fd = openat(place->fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    for (size_t at = 0; fd >= 0 && at < size; at += sizeof bytes)
        if (io_write_all(fd, bytes, sizeof bytes) < 0) {
            int failed = errno;
            io_close(&fd);
            unlinkat(place->fd, name, 0);
            errno = failed;
        }
    return fd >= 0 ? fd : err_sys(err, ERR_TOOL, errno, "cannot write a file in %s", place->path);
}

/* Calls fn with the names of two files; what it returns, with errno's text for -1. */
static int with_files(int (*fn)(int dir, const char *one, const char *other), const char *what,
                      struct err *err)
{
    struct place place PLACE_AUTO = PLACE_INIT;
    char one[32], other[32];
    if (place_open(&place, err) < 0)
        return -1;
    int first FD_AUTO = make_file(&place, 1, 0, err), second FD_AUTO = -1;
    if (first >= 0)
        second = make_file(&place, 2, 0, err);
    name_file(one, 1);
    name_file(other, 2);
    int result = second < 0 ? -1 : fn(place.fd, one, other);
    if (second >= 0 && result < 0)
        err_sys(err, ERR_TOOL, errno, "%s in %s", what, place.path);
    unlinkat(place.fd, one, 0);
    unlinkat(place.fd, other, 0);
    return result;
}

static int try_space(struct err *err)
{
    struct place place PLACE_AUTO = PLACE_INIT;
    char name[32];
    if (place_open(&place, err) < 0)
        return -1;
    int fd FD_AUTO = make_file(&place, 1, FILE_BYTES, err);
    name_file(name, 1);
    unlinkat(place.fd, name, 0);
    return fd < 0 ? -1 : 0;
}

static int exchange(int dir, const char *one, const char *other)
{
#ifdef SYS_renameat2
    return (int)syscall(SYS_renameat2, dir, one, dir, other, RENAME_EXCHANGE);
#else
    errno = ENOSYS;
    return -1;
#endif
}

static int try_exchange(struct err *err)
{
    return with_files(exchange, "two files cannot be exchanged", err);
}

static int link_over(int dir, const char *one, const char *other)
{
    return unlinkat(dir, other, 0) < 0 ? -1 : linkat(dir, one, dir, other, 0);
}

static int try_link(struct err *err)
{
    return with_files(link_over, "a file cannot get a second name", err);
}

static int lock(int dir, const char *one, const char *other)
{
    (void)other;
    int fd FD_AUTO = openat(dir, one, O_RDWR | O_CLOEXEC);
    return fd < 0 ? -1 : flock(fd, LOCK_EX | LOCK_NB);
}

/* What an edit takes besides. */
static int edit(int dir, const char *one, const char *other)
{
    char byte = 1;
    struct iovec part = {&byte, 1};
    int there FD_AUTO = no_links_open(dir, ".", O_RDONLY | O_DIRECTORY);
    int fd FD_AUTO = openat(dir, one, O_RDWR | O_CLOEXEC), copy FD_AUTO = there < 0 ? -1 : dup(there);
    DIR *names = copy < 0 ? NULL : fdopendir(copy);
    if (!names)
        return -1;
    copy = -1; /* it is the list's now */
    bool fine = readdir(names) != NULL && writev(fd, &part, 1) == 1 && lseek(fd, 0, SEEK_SET) == 0 &&
                fchmod(fd, 0600) == 0 && futimens(fd, NULL) == 0 &&
                faccessat(dir, other, W_OK, AT_EACCESS) == 0;
    int failed = errno;
    flistxattr(fd, NULL, 0); /* a file system may know none */
    closedir(names);
    errno = failed;
    return fine ? 0 : -1;
}

static int try_edit(struct err *err)
{
    return with_files(edit, "a file cannot be edited", err);
}

static int try_lock(struct err *err)
{
    return with_files(lock, "a file cannot be locked", err);
}

/* A byte from one end of a connection to the other, as calls go. */
static int pass_byte(int listener, int peer)
{
    char byte = 1;
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    int other FD_AUTO = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (other < 0 || sendmsg(peer, &message, MSG_NOSIGNAL) != 1)
        return -1;
    return recv(other, &byte, 1, 0) == 1 ? 0 : -1;
}

static int try_socket(struct err *err)
{
    struct place place PLACE_AUTO = PLACE_INIT;
    char owner[32];
    pid_t pid;
    uid_t uid;
    if (place_open(&place, err) < 0)
        return -1;
    snprintf(owner, sizeof owner, IPC_TRANSIENT "doctor-%ld", (long)getpid());
    int fd FD_AUTO = ipc_listen(place.fd, owner, err);
    if (fd < 0)
        return -1;
    int peer FD_AUTO = ipc_connect(place.fd, owner, 1);
    int failed = peer < 0 || ipc_peer(peer, &pid, &uid) < 0 || pass_byte(fd, peer) < 0 ? errno : 0;
    ipc_unlink(place.fd, owner);
    return failed ? err_sys(err, ERR_TOOL, failed, "cannot connect to a socket in %s", place.path) : 0;
}

static int try_inotify(struct err *err)
{
    int fd FD_AUTO = inotify_init1(IN_CLOEXEC);
    return fd >= 0 && inotify_add_watch(fd, "/", IN_MOVE_SELF | IN_ONLYDIR) >= 0
               ? 0
               : err_sys(err, ERR_TOOL, errno, "inotify");
}

static int try_loopback(struct err *err)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof at;
    int fd FD_AUTO = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int peer FD_AUTO = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool fine = bind(fd, (struct sockaddr *)&at, size) == 0 && listen(fd, 1) == 0 &&
                getsockname(fd, (struct sockaddr *)&at, &size) == 0 &&
                connect(peer, (struct sockaddr *)&at, size) == 0;
    return fine ? 0 : err_sys(err, ERR_TOOL, errno, "cannot connect to 127.0.0.1");
}

static int try_temporary(struct err *err)
{
    const char *given = getenv("TMPDIR"), *directory = given && *given ? given : "/tmp";
    char name[4096];
    snprintf(name, sizeof name, "%s/.toolbox-doctor-%ld", directory, (long)getpid());
    int fd FD_AUTO = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0)
        unlink(name); /* before anything can end this process */
    return fd < 0 || io_write_all(fd, name, sizeof name) < 0
               ? err_sys(err, ERR_TOOL, errno, "cannot write to %s", directory)
               : 0;
}

static int try_null(struct err *err)
{
    struct stat st;
    int fd FD_AUTO = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_sys(err, ERR_TOOL, errno, "/dev/null");
    return S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3)
               ? 0
               : err_set(err, ERR_TOOL, "/dev/null is no such device, but something else");
}

const struct check doctor_device_checks[] = {
    {"inotify", "server", try_inotify, "a server notices seldom that its directory was removed",
     "raise fs.inotify.max_user_instances and max_user_watches"},
    {"/dev/null", "all", try_null, "a pipe that nobody uses takes its place; what shells run may fail",
     "mknod -m 666 /dev/null c 1 3"},
    {"temporary files", "bash_session, exec_remote", try_temporary,
     "what programs want to write there fails, long here-documents of a shell too",
     "make /tmp writable (mode 1777, a tmpfs), or name another directory in TMPDIR"},
    {"loopback", "model_proxy, web_browser", try_loopback, NULL, "ip link set lo up"},
    {0},
};

const struct check doctor_place_checks[] = {
    {"private directory", "all", try_place, NULL,
     "name a directory that is this user's alone in TOOLBOX_DIR, or mount a tmpfs at /run"},
    {"disk space", "all", try_space, NULL,
     "free some there (df, df -i, ulimit -f), or name another directory in TOOLBOX_DIR"},
    {"sockets", "all", try_socket, NULL, "name a directory on another file system in TOOLBOX_DIR"},
    {"locks", "all", try_lock, NULL, "name a directory on another file system in TOOLBOX_DIR"},
    {"editing", "text_editor, file", try_edit, NULL,
     "let it call openat2, getdents64, writev, lseek, fchmod, utimensat, faccessat2, flistxattr (seccomp, an "
     "LSM)"},
    {"rename exchange", "text_editor", try_exchange,
     "a plain rename, which misses a change made in that very moment",
     "a kernel from 3.15 on, another file system"},
    {"hard links", "text_editor", try_link, "the undo history gets copies", "another file system"},
    {0},
};
