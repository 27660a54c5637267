/* Finding the server, or starting it: exactly one, however many want it at the same moment, and whoever of
 * them is killed. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "buf.h"
#include "client.h"
#include "io.h"
#include "mem.h"
#include "server_internal.h"

#define START_MS 15000 /* for one server to be up, and for all tries where they are killed */
#define LOCK_NAME ".lock"
#define LOCK_TICK_MS 5

/* ---- one starter at a time ---- */

static int try_lock(const struct place *p, struct err *err)
{
    int fd = openat(p->fd, LOCK_NAME, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
    if (fd < 0)
        return err_sys(err, ERR_TOOL, errno, "cannot use %s/%s", p->path, LOCK_NAME);
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        return fd;
    close(fd);
    return -2;
}

int server_lock(const struct place *p, struct err *err)
{
    for (long long until = now_ms() + START_MS; now_ms() < until; usleep(LOCK_TICK_MS * 1000)) {
        int fd = try_lock(p, err);
        if (fd != -2)
            return fd;
    }
    return err_set(err, ERR_TOOL, "another process has been starting the server for %d s (lock %s/%s)",
                   START_MS / 1000, p->path, LOCK_NAME);
}

/* ---- where ---- */

struct sought {
    bool keepers_only, found;
};

static void look_at(void *arg, const char *owner)
{
    struct sought *s = arg;
    s->found = s->found || !s->keepers_only || ipc_is_keeper(owner);
}

bool server_find_sockets(struct place *p, bool keepers_only)
{
    struct buf path BUF_AUTO = BUF_INIT;
    for (unsigned n = 0; place_candidate(n, &path); n++) {
        struct sought s = {.keepers_only = keepers_only};
        if (place_enter(p, path.data, false, NULL) < 0)
            continue;
        ipc_each(p->fd, look_at, &s);
        if (s.found)
            return true;
        place_release(p);
    }
    return false;
}

/* Keepers that outlived their server need one where they are. */
static int choose_place(struct place *p, struct err *err)
{
    return server_find_sockets(p, true) ? 0 : place_open(p, err);
}

/* ---- starting ---- */

/* A process of its own, whose end nobody here waits for. Process 1 of a container may be one that waits for
 * nobody (`sleep infinity`), and keeps every orphan that has ended. Whoever was started from outside of the
 * container (docker exec) has a parent there, which the new process gets as well: what starts processes in
 * containers does wait for them, or leaves them to somebody who does. */
static pid_t fork_beside(void)
{
    long pid = -1;
    if (getppid() == 0)
#ifdef __s390x__
        pid = syscall(SYS_clone, NULL, CLONE_PARENT | SIGCHLD, NULL, NULL, NULL);
#else
        pid = syscall(SYS_clone, CLONE_PARENT | SIGCHLD, NULL, NULL, NULL, NULL);
#endif
    return pid < 0 ? fork() : (pid_t)pid;
}

/* The server is this very program, forked: nothing has to be found or executed again. The lock is its own as
 * well until it listens, so that it holds when this process is killed. 0, -1, or -2 when it was killed. */
static int fork_server(struct place *place, int lock_fd, struct err *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_sys(err, ERR_TOOL, errno, "cannot start the server");
    pid_t pid = fork_beside();
    if (pid == 0)
        _exit(server_run(place, lock_fd, ends[1], false));
    int failed = pid < 0 ? errno : 0;
    close(ends[1]);
    int word_fd FD_AUTO = ends[0];
    if (failed)
        return err_sys(err, ERR_TOOL, failed, "cannot start the server");
    struct pollfd p = {.fd = word_fd, .events = POLLIN};
    if (poll(&p, 1, START_MS) == 0) {
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        return err_set(err, ERR_TOOL, "the server was not ready within %d s", START_MS / 1000);
    }
    struct buf word BUF_AUTO = {.max = sizeof(struct err)};
    io_read_all(word_fd, &word);
    if (word.len == 1)
        return 0;
    kill(pid, SIGKILL); /* it is ending, or could not say a word */
    waitpid(pid, NULL, 0);
    if (err_take(err, word.data, word.len) == 0)
        return -1;
    err_set(err, ERR_INTERNAL, "the server ended before it was ready");
    return -2;
}

/* A connection; -1, or -2 when the server was killed on the way. */
static int find_or_start(struct err *err)
{
    struct place place PLACE_AUTO = PLACE_INIT;
    int fd = ipc_find(&place, IPC_SERVER);
    if (fd >= 0)
        return fd;
    if (choose_place(&place, err) < 0)
        return -1;
    int lock_fd FD_AUTO = server_lock(&place, err);
    if (lock_fd < 0)
        return -1;
    fd = ipc_connect(place.fd, IPC_SERVER, 1);
    if (fd >= 0)
        return fd;
    if (errno == EAGAIN)
        return err_set(err, ERR_TOOL, "the server in %s takes no more connections; is it stopped?",
                       place.path);
    int started = fork_server(&place, lock_fd, err);
    if (started < 0)
        return started;
    fd = ipc_connect(place.fd, IPC_SERVER, IPC_WAIT_S);
    if (fd >= 0)
        return fd;
    err_sys(err, ERR_TOOL, errno, "the server in %s does not answer", place.path);
    return -2;
}

/* Whether there is time to try again; *until is 0 at first. */
static bool may_try_again(long long *until)
{
    long long now = now_ms();
    if (*until == 0)
        *until = now + START_MS;
    return now < *until;
}

int server_connect(struct err *err)
{
    long long until = 0;
    int fd;
    do
        fd = find_or_start(err);
    while (fd == -2 && may_try_again(&until));
    return fd < 0 ? -1 : fd;
}

/* ---- asking ---- */

/* The server begins as a copy of this process, and is not to keep a request of many megabytes. Only what lies
 * in memory of its own: its arguments are written over. */
static void keep_from_server(struct span request)
{
    const size_t least = 1u << 18, page = (size_t)sysconf(_SC_PAGESIZE);
    if (request.n < least)
        return;
    char *begin = (char *)request.s + (page - (size_t)request.s % page) % page;
    size_t n = (size_t)(request.s + request.n - begin) / page * page;
    madvise(begin, n, MADV_DONTFORK);
}

int server_call(int *fd, struct span request, bool query, int timeout_ms, struct buf *answer, struct err *err)
{
    long long until = 0;
    keep_from_server(request);
    for (;;) {
        *fd = server_connect(err);
        if (*fd < 0)
            return -1;
        if (client_call(*fd, request, answer, timeout_ms, err) == 0)
            return 0;
        bool again = errno == ECONNRESET || (errno == EPIPE && query);
        io_close(fd);
        buf_truncate(answer, 0);
        if (!again || !may_try_again(&until))
            return -1;
    }
}
