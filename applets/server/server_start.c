/* Finding the server, or starting it: exactly one, however many want it at the same moment. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "buf.h"
#include "io.h"
#include "mem.h"
#include "server_internal.h"

#define LOCK_NAME ".lock"
#define LOCK_WAIT_MS 15000
#define LOCK_TICK_MS 5

/* True when the descriptor is still what stands under the name: stop-server removes the lock file, and a lock
 * on a removed file locks nobody out. */
static bool is_current(int fd, int dirfd)
{
    struct stat ours, there;
    return fstat(fd, &ours) == 0 && fstatat(dirfd, LOCK_NAME, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
           ours.st_ino == there.st_ino && ours.st_dev == there.st_dev;
}

static int try_lock(const struct place *p, struct err *err)
{
    int fd = openat(p->fd, LOCK_NAME, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
    if (fd < 0)
        return err_sys(err, ERR_TOOL, errno, "cannot use %s/%s", p->path, LOCK_NAME);
    if (flock(fd, LOCK_EX | LOCK_NB) == 0 && is_current(fd, p->fd))
        return fd;
    close(fd);
    return -2;
}

static int lock(const struct place *p, struct err *err)
{
    for (long long until = now_ms() + LOCK_WAIT_MS; now_ms() < until; usleep(LOCK_TICK_MS * 1000)) {
        int fd = try_lock(p, err);
        if (fd != -2)
            return fd;
    }
    return err_set(err, ERR_TOOL, "another process has been starting the server for %d s (lock %s/%s)",
                   LOCK_WAIT_MS / 1000, p->path, LOCK_NAME);
}

/* The server is this very program, forked: nothing has to be found or executed again. */
static int fork_server(struct place *place, struct err *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_sys(err, ERR_TOOL, errno, "cannot start the server");
    pid_t pid = fork();
    if (pid == 0)
        _exit(server_run(place, ends[1], false));
    close(ends[1]);
    struct buf word BUF_AUTO = {.max = sizeof(struct err)};
    int failed = pid < 0 ? errno : 0;
    if (!failed)
        io_read_all(ends[0], &word);
    close(ends[0]);
    if (failed)
        return err_sys(err, ERR_TOOL, failed, "cannot start the server");
    if (word.len == 1)
        return 0;
    if (word.len == sizeof *err && err)
        memcpy(err, word.data, sizeof *err);
    else
        err_set(err, ERR_INTERNAL, "the server ended before it was ready");
    return -1;
}

int server_connect(struct err *err)
{
    struct place place PLACE_AUTO = PLACE_INIT;
    int fd = ipc_find(&place, IPC_SERVER);
    if (fd >= 0)
        return fd;
    if (place_open(&place, err) < 0)
        return -1;
    int lock_fd FD_AUTO = lock(&place, err);
    if (lock_fd < 0)
        return -1;
    fd = ipc_connect(place.fd, IPC_SERVER);
    if (fd >= 0)
        return fd;
    if (fork_server(&place, err) < 0)
        return -1;
    fd = ipc_connect(place.fd, IPC_SERVER);
    return fd >= 0 ? fd : err_sys(err, ERR_TOOL, errno, "the server in %s does not answer", place.path);
}
