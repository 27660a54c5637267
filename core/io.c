#include "io.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "buf.h"

#define WIDE (1 << 18)
#define READ_FIRST 1023 /* with the NUL a power of two: a request, a file of /proc */

static void wait_for(int fd, short events)
{
    struct pollfd p = {.fd = fd, .events = events};
    poll(&p, 1, -1);
}

bool io_is_readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int n;
    do
        n = poll(&p, 1, 0);
    while (n < 0 && errno == EINTR);
    return n > 0 && (p.revents & POLLIN);
}

int io_write_all(int fd, const void *data, size_t len)
{
    const char *at = data;
    while (len > 0) {
        ssize_t n = write(fd, at, len);
        if (n >= 0) {
            at += n;
            len -= (size_t)n;
        } else if (errno == EAGAIN) {
            wait_for(fd, POLLOUT);
        } else if (errno != EINTR) {
            return -1;
        }
    }
    return 0;
}

/* Makes room for a read and says how much there is, 0 at max. It doubles: what is read whole is small as a
 * rule, and in a process of one call fresh memory is what costs most. */
static size_t make_room(struct buf *out)
{
    size_t left = out->len < out->max ? out->max - out->len : 0; /* max may have become less than there is */
    if (out->cap <= out->len + 1 && left > 0) {
        size_t want = out->len > READ_FIRST ? out->len : READ_FIRST;
        buf_reserve(out, want < left ? want : left);
    }
    size_t room = out->cap > 0 ? out->cap - out->len - 1 : 0;
    return room < left ? room : left;
}

/* False when the time is over; until < 0: never. */
static bool wait_readable(int fd, long long until)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    long long left = until < 0 ? -1 : until - now_ms();
    return poll(&p, 1, left < 0 && until >= 0 ? 0 : (int)left) != 0;
}

ssize_t io_read_more(int fd, struct buf *out)
{
    /* One byte past max, so that a file of exactly max bytes is told from a longer one. */
    char one;
    size_t room = make_room(out);
    ssize_t n = room > 0 ? read(fd, out->data + out->len, room) : read(fd, &one, 1);
    if (n > 0 && room == 0)
        return errno = EFBIG, -1;
    if (n > 0) {
        out->len += (size_t)n;
        out->data[out->len] = '\0';
    }
    return n;
}

static int read_all(int fd, long long until, struct buf *out)
{
    for (;;) {
        ssize_t n = io_read_more(fd, out);
        if (n == 0)
            return 0;
        if (n < 0 && errno == EAGAIN) {
            if (!wait_readable(fd, until))
                return errno = ETIMEDOUT, -1;
        } else if (n < 0 && errno != EINTR) {
            return -1;
        }
    }
}

int io_read_all(int fd, struct buf *out)
{
    return read_all(fd, -1, out);
}

int io_read_within(int fd, int ms, struct buf *out)
{
    return io_set_nonblock(fd, true) < 0 ? -1 : read_all(fd, now_ms() + ms, out);
}

int io_read_file(int dirfd, const char *path, struct buf *out)
{
    int fd FD_AUTO = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    return fd < 0 ? -1 : io_read_all(fd, out);
}

bool io_is_there(int dirfd, const char *name)
{
    struct stat st;
    return fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

int io_set_nonblock(int fd, bool on)
{
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0)
        return -1;
    return fcntl(fd, F_SETFL, on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK);
}

int io_keep(int fd, bool keep)
{
    return fcntl(fd, F_SETFD, keep ? 0 : FD_CLOEXEC);
}

int io_pipes(int pipes[][2], size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (pipe2(pipes[i], O_CLOEXEC) < 0)
            return -1;
    return 0;
}

void io_widen(int pipe, bool *done)
{
    if (!*done && fcntl(pipe, F_SETPIPE_SZ, WIDE) < 0) {
        /* it is none, or this user has as many as he may: it does as it is */
    }
    *done = true;
}

int io_take(int *fd)
{
    int taken = *fd;
    *fd = -1;
    io_set_nonblock(taken, true);
    return taken;
}

void io_close(int *fd)
{
    int saved = errno;
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
    errno = saved;
}

static void close_range_slowly(int first, int last)
{
    struct rlimit limit;
    int top = 65536;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < 65536)
        top = (int)limit.rlim_cur;
    if (last >= top)
        last = top - 1;
    for (int fd = first; fd <= last; fd++)
        close(fd);
}

static void close_from_to(int first, int last)
{
    if (first > last)
        return;
#ifdef SYS_close_range
    if (syscall(SYS_close_range, (unsigned)first, (unsigned)last, 0u) == 0)
        return;
#endif
    close_range_slowly(first, last);
}

void io_close_others(const int *keep, size_t n)
{
    for (int first = 3;;) {
        int next = INT_MAX;
        for (size_t i = 0; i < n; i++)
            if (keep[i] >= first && keep[i] < next)
                next = keep[i];
        close_from_to(first, next - 1);
        if (next == INT_MAX)
            return;
        first = next + 1;
    }
}

void io_fill_std(void)
{
    struct pollfd std[] = {{.fd = 0}, {.fd = 1}, {.fd = 2}};
    poll(std, 3, 0);
    for (int fd = 0; fd <= 2; fd++) {
        if (!(std[fd].revents & POLLNVAL))
            continue;
        int filler = open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
        int ends[2];
        if (filler < 0 && pipe(ends) == 0) {
            /* An end for reading alone, and nobody writes to it: reads end and writes fail. */
            filler = ends[0];
            close(ends[1]);
        }
        if (filler >= 0 && filler != fd) {
            dup2(filler, fd);
            close(filler);
        }
    }
}

long long now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000LL + t.tv_nsec / 1000;
}

long long now_ms(void)
{
    return now_us() / 1000;
}

long long wall_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

/* In two steps: a gVisor follows a symlink in spite of O_NOFOLLOW where O_DIRECTORY is asked for without
 * O_PATH. */
int io_open_dir(int at, const char *name)
{
    int there FD_AUTO = openat(at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return there < 0 ? -1 : openat(there, ".", O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);
}
