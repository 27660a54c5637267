#include "session_sleep.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "buf.h"
#include "io.h"
#include "session_trace.h"

#define BUSY_MS 500 /* a program that waits for less than that is at work */
#define N_POLLED 64 /* descriptors of a poll that are looked at */

static bool may_stop;

void sleeping_may_be_stopped(bool may)
{
    may_stop = may;
}

static int read_stopped(pid_t pid, struct sleeping *s, bool again)
{
    *s = (struct sleeping){.pid = pid};
    if (trace_sleeping(pid, again, &s->call, s->arg) < 0)
        return -1;
    int n = snprintf(s->text, sizeof s->text, s->call < 0 ? "running" : "%ld", s->call);
    for (size_t i = 0; i < 6; i++)
        n += snprintf(s->text + n, sizeof s->text - (size_t)n, " 0x%llx", s->arg[i]);
    return 0;
}

/* The line comes whole by one read. `again`: it was read just before. */
static int read_line(pid_t pid, struct sleeping *s, bool again)
{
    char path[40];
    snprintf(path, sizeof path, "/proc/%ld/syscall", (long)pid);
    int fd FD_AUTO = openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, s->text, sizeof s->text - 1);
    if (n < 0)
        return may_stop && errno == ENOENT ? read_stopped(pid, s, again) : -1;
    s->text[n] = '\0';
    char *at = s->text, *end;
    s->pid = pid;
    s->call = strtol(at, &end, 10);
    for (size_t i = 0; i < 6 && end != at; i++) {
        at = end;
        s->arg[i] = strtoull(at, &end, 16);
    }
    if (end == at)
        s->call = -1; /* "running", or "-1 SP PC": it sleeps, but in no system call */
    return 0;
}

int sleeping_read(pid_t pid, struct sleeping *s)
{
    return read_line(pid, s, false);
}

bool sleeping_still(const struct sleeping *s)
{
    struct sleeping again;
    return read_line(s->pid, &again, true) == 0 && strcmp(s->text, again.text) == 0;
}

bool sleeping_is_running(const struct sleeping *s)
{
    return *s->text == 'r'; /* "running" */
}

static bool read_memory(pid_t pid, unsigned long long address, void *into, size_t size)
{
    char path[40];
    snprintf(path, sizeof path, "/proc/%ld/mem", (long)pid);
    int fd FD_AUTO = openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    return fd >= 0 && pread(fd, into, size, (off_t)address) == (ssize_t)size;
}

/* A timeout in the process's memory (timespec or timeval: the second number counts `units` a millisecond) is
 * not long. */
static bool is_short(pid_t pid, unsigned long long address, long units)
{
    long time[2];
    if (address == 0 || !read_memory(pid, address, time, sizeof time))
        return false;
    return time[0] == 0 && time[1] / units < BUSY_MS;
}

#ifdef SYS_pselect6_time64
static bool is_short64(pid_t pid, unsigned long long address)
{
    int64_t time[2];
    if (address == 0 || !read_memory(pid, address, time, sizeof time))
        return false;
    return time[0] == 0 && time[1] / 1000000 < BUSY_MS;
}
#endif

/* What is asked for. */
struct wanted {
    descriptor_fn is;
    const void *arg;
};

static bool is_wanted(const struct wanted *w, pid_t pid, unsigned long long fd)
{
    return w->is(w->arg, pid, fd);
}

static bool selects(const struct wanted *w, const struct sleeping *s)
{
    fd_set set;
    unsigned long long n = s->arg[0] < FD_SETSIZE ? s->arg[0] : FD_SETSIZE;
    size_t size = (size_t)(n + 63) / 64 * 8;
    if (n == 0 || s->arg[1] == 0 || !read_memory(s->pid, s->arg[1], &set, size))
        return false;
    for (unsigned long long fd = 0; fd < n; fd++)
        if (FD_ISSET(fd, &set) && is_wanted(w, s->pid, fd))
            return true;
    return false;
}

static bool polls(const struct wanted *w, const struct sleeping *s)
{
    struct pollfd polled[N_POLLED];
    size_t n = s->arg[1] < N_POLLED ? (size_t)s->arg[1] : N_POLLED;
    if (n == 0 || !read_memory(s->pid, s->arg[0], polled, n * sizeof *polled))
        return false;
    for (size_t i = 0; i < n; i++)
        if (polled[i].fd >= 0 && (polled[i].events & POLLIN) && is_wanted(w, s->pid, (unsigned)polled[i].fd))
            return true;
    return false;
}

/* Begun anew behind a stop, by a call that says nothing of it but that its arguments are still there: poll,
 * or a sleep or a futex, which have other ones. */
static bool polls_again(const struct wanted *w, const struct sleeping *s)
{
    return s->arg[1] <= N_POLLED && polls(w, s);
}

static bool epolls(const struct wanted *w, const struct sleeping *s)
{
    char path[64];
    struct buf text BUF_AUTO = BUF_INIT;
    snprintf(path, sizeof path, "/proc/%ld/fdinfo/%llu", (long)s->pid, s->arg[0]);
    if (io_read_file(AT_FDCWD, path, &text) < 0)
        return false;
    for (const char *at = buf_str(&text); (at = strstr(at, "tfd:")); at++) {
        char *end;
        unsigned long long fd = strtoull(at + 4, &end, 10);
        const char *events = strstr(end, "events:");
        if (events && (strtoul(events + 7, NULL, 16) & EPOLLIN) && is_wanted(w, s->pid, fd))
            return true;
    }
    return false;
}

/* Programs with timers for their own housekeeping (node's garbage collector) wait for seconds. */
bool sleeping_briefly(const struct sleeping *s)
{
    switch (s->call) {
    case SYS_pselect6:
        return is_short(s->pid, s->arg[4], 1000000);
#ifdef SYS_select
    case SYS_select:
        return is_short(s->pid, s->arg[4], 1000);
#endif
    case SYS_ppoll:
        return is_short(s->pid, s->arg[2], 1000000);
    case SYS_restart_syscall:
#ifdef SYS_poll
    case SYS_poll:
#endif
        return (int)s->arg[2] >= 0 && (int)s->arg[2] < BUSY_MS;
#ifdef SYS_pselect6_time64 /* 32-bit processors have two sizes of time */
    case SYS_pselect6_time64:
        return is_short64(s->pid, s->arg[4]);
    case SYS_ppoll_time64:
        return is_short64(s->pid, s->arg[2]);
    case SYS__newselect:
        return is_short(s->pid, s->arg[4], 1000);
#endif
    case SYS_epoll_pwait:
#ifdef SYS_epoll_wait
    case SYS_epoll_wait:
#endif
        return (int)s->arg[3] >= 0 && (int)s->arg[3] < BUSY_MS;
    default:
        return false;
    }
}

/* Until a time of that clock. */
static bool is_soon(pid_t pid, unsigned long long address, clockid_t clock)
{
    struct timespec until, now;
    if (!read_memory(pid, address, &until, sizeof until) || clock_gettime(clock, &now) < 0)
        return false;
    return (until.tv_sec - now.tv_sec) * 1000LL + (until.tv_nsec - now.tv_nsec) / 1000000 < BUSY_MS;
}

bool sleeping_nap(const struct sleeping *s)
{
    if (s->call == SYS_clock_nanosleep)
        return (s->arg[1] & TIMER_ABSTIME) ? is_soon(s->pid, s->arg[2], (clockid_t)s->arg[0])
                                           : is_short(s->pid, s->arg[2], 1000000);
#ifdef SYS_nanosleep
    if (s->call == SYS_nanosleep)
        return is_short(s->pid, s->arg[0], 1000000);
#endif
    return sleeping_briefly(s);
}

bool sleeping_for(const struct sleeping *s, descriptor_fn is, const void *arg)
{
    const struct wanted w = {is, arg};
    switch (s->call) {
    case SYS_read:
    case SYS_readv:
#ifdef SYS_recvfrom
    case SYS_recvfrom:
#endif
#ifdef SYS_recvmsg
    case SYS_recvmsg:
#endif
        return is_wanted(&w, s->pid, s->arg[0]);
    case SYS_pselect6:
#ifdef SYS_select
    case SYS_select:
#endif
#ifdef SYS_pselect6_time64
    case SYS_pselect6_time64:
    case SYS__newselect:
#endif
        return selects(&w, s);
    case SYS_ppoll:
#ifdef SYS_poll
    case SYS_poll:
#endif
#ifdef SYS_pselect6_time64
    case SYS_ppoll_time64:
#endif
        return polls(&w, s);
    case SYS_restart_syscall:
        return polls_again(&w, s);
    case SYS_epoll_pwait:
#ifdef SYS_epoll_wait
    case SYS_epoll_wait:
#endif
        return epolls(&w, s);
    default:
        return false;
    }
}

bool sleeping_for_input(const struct sleeping *s)
{
    static const long calls[] = {
        SYS_read,
        SYS_restart_syscall,
        SYS_pselect6,
        SYS_ppoll,
#ifdef SYS_select
        SYS_select,
#endif
#ifdef SYS_poll
        SYS_poll,
#endif
#ifdef SYS_pselect6_time64
        SYS_pselect6_time64,
        SYS_ppoll_time64,
        SYS__newselect,
#endif
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (s->call == calls[i])
            return true;
    return false;
}
