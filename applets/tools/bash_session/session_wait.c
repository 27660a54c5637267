#include "session_wait.h"

#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/fsuid.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "buf.h"
#include "dir_read.h"
#include "io.h"
#include "mem.h"
#include "osinfo.h"
#include "proc.h"

#define BUSY_MS 500 /* a program that waits for less than that is at work */
#define DEPTH_MAX 8 /* terminals in terminals */
#define N_POLLED 64 /* descriptors of a poll that are looked at */

/* The system call a process sleeps in (proc(5), /proc/PID/syscall), and its first arguments. */
struct sleeping {
    pid_t pid;
    long call;
    unsigned long long arg[6];
    char text[256]; /* the line itself: equal twice means that the process has not moved */
};

static int read_sleeping(pid_t pid, struct sleeping *s)
{
    char path[40];
    struct buf text BUF_AUTO = BUF_INIT;
    snprintf(path, sizeof path, "/proc/%ld/syscall", (long)pid);
    if (io_read_file(AT_FDCWD, path, &text) < 0)
        return -1;
    snprintf(s->text, sizeof s->text, "%s", buf_str(&text));
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

static dev_t number_of(const struct pty *pty)
{
    struct stat st;
    return fstat(pty->slave, &st) == 0 ? st.st_rdev : 0;
}

/* True when descriptor fd of the process is this terminal, by its own name or as /dev/tty. */
static bool is_terminal(dev_t tty, pid_t pid, unsigned long long fd)
{
    char path[48];
    struct stat there;
    snprintf(path, sizeof path, "/proc/%ld/fd/%llu", (long)pid, fd);
    return stat(path, &there) == 0 && S_ISCHR(there.st_mode) &&
           (there.st_rdev == tty || there.st_rdev == makedev(5, 0));
}

static bool read_memory(pid_t pid, unsigned long long address, void *into, size_t size)
{
    char path[40];
    snprintf(path, sizeof path, "/proc/%ld/mem", (long)pid);
    int fd FD_AUTO = open(path, O_RDONLY | O_CLOEXEC);
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

static bool selects_terminal(dev_t tty, const struct sleeping *s)
{
    fd_set set;
    unsigned long long n = s->arg[0] < FD_SETSIZE ? s->arg[0] : FD_SETSIZE;
    size_t size = (size_t)(n + 63) / 64 * 8;
    if (n == 0 || s->arg[1] == 0 || !read_memory(s->pid, s->arg[1], &set, size))
        return false;
    for (unsigned long long fd = 0; fd < n; fd++)
        if (FD_ISSET(fd, &set) && is_terminal(tty, s->pid, fd))
            return true;
    return false;
}

static bool polls_terminal(dev_t tty, const struct sleeping *s)
{
    struct pollfd polled[N_POLLED];
    size_t n = s->arg[1] < N_POLLED ? (size_t)s->arg[1] : N_POLLED;
    if (n == 0 || !read_memory(s->pid, s->arg[0], polled, n * sizeof *polled))
        return false;
    for (size_t i = 0; i < n; i++)
        if (polled[i].fd >= 0 && (polled[i].events & POLLIN) &&
            is_terminal(tty, s->pid, (unsigned)polled[i].fd))
            return true;
    return false;
}

/* Not one that will soon do something else: programs with timers for their own housekeeping (node's garbage
 * collector) wait for seconds. */
static bool epolls_terminal(dev_t tty, const struct sleeping *s)
{
    char path[64];
    struct buf text BUF_AUTO = BUF_INIT;
    snprintf(path, sizeof path, "/proc/%ld/fdinfo/%llu", (long)s->pid, s->arg[0]);
    int timeout_ms = (int)s->arg[3];
    if ((timeout_ms >= 0 && timeout_ms < BUSY_MS) || io_read_file(AT_FDCWD, path, &text) < 0)
        return false;
    for (const char *at = buf_str(&text); (at = strstr(at, "tfd:")); at++) {
        char *end;
        unsigned long long fd = strtoull(at + 4, &end, 10);
        const char *events = strstr(end, "events:");
        if (events && (strtoul(events + 7, NULL, 16) & EPOLLIN) && is_terminal(tty, s->pid, fd))
            return true;
    }
    return false;
}

static bool calls_for_terminal(dev_t tty, const struct sleeping *s)
{
    switch (s->call) {
    case SYS_read:
    case SYS_readv:
        return is_terminal(tty, s->pid, s->arg[0]);
    case SYS_pselect6:
        return selects_terminal(tty, s) && !is_short(s->pid, s->arg[4], 1000000);
#ifdef SYS_select
    case SYS_select:
        return selects_terminal(tty, s) && !is_short(s->pid, s->arg[4], 1000);
#endif
    case SYS_ppoll:
        return polls_terminal(tty, s) && !is_short(s->pid, s->arg[2], 1000000);
#ifdef SYS_poll
    case SYS_poll:
        return polls_terminal(tty, s) && ((int)s->arg[2] < 0 || (int)s->arg[2] >= BUSY_MS);
#endif
#ifdef SYS_pselect6_time64 /* 32-bit processors have two sizes of time */
    case SYS_pselect6_time64:
        return selects_terminal(tty, s) && !is_short64(s->pid, s->arg[4]);
    case SYS_ppoll_time64:
        return polls_terminal(tty, s) && !is_short64(s->pid, s->arg[2]);
    case SYS__newselect:
        return selects_terminal(tty, s) && !is_short(s->pid, s->arg[4], 1000);
#endif
    case SYS_epoll_pwait:
#ifdef SYS_epoll_wait
    case SYS_epoll_wait:
#endif
        return epolls_terminal(tty, s);
    default:
        return false;
    }
}

/* What descriptor and memory say is of a later moment than the system call: it has to be the same one
 * afterwards. */
static bool waits_for_terminal(dev_t tty, const struct sleeping *s)
{
    struct sleeping again;
    return calls_for_terminal(tty, s) && read_sleeping(s->pid, &again) == 0 &&
           strcmp(s->text, again.text) == 0;
}

/* A thread other than the first may be the one that reads. */
static bool any_thread(dev_t tty, pid_t pid)
{
    char path[40];
    struct sleeping s;
    const char *name;
    bool found = false;
    snprintf(path, sizeof path, "/proc/%ld/task", (long)pid);
    DIR *dir DIR_AUTO = opendir(path);
    while (!found && (name = dir_next(dir)))
        found = read_sleeping((pid_t)strtol(name, NULL, 10), &s) == 0 && waits_for_terminal(tty, &s);
    return found;
}

/* ---- terminals behind the terminal ---- */

/* It has the other end of a terminal of its own: script, expect, a multiplexer. */
static bool has_master(pid_t pid)
{
    char path[48];
    struct stat st;
    const char *name;
    bool found = false;
    snprintf(path, sizeof path, "/proc/%ld/fd", (long)pid);
    DIR *dir DIR_AUTO = opendir(path);
    while (!found && (name = dir_next(dir)))
        found = fstatat(dirfd(dir), name, &st, 0) == 0 && S_ISCHR(st.st_mode) && st.st_rdev == makedev(5, 2);
    return found;
}

static bool any_in_group(dev_t tty, pid_t group, int depth);

/* What such a program waits for is what those wait for who are behind it: whoever is in the foreground of a
 * terminal other than its own. Without one it is about to end. */
static bool behind_waits(const struct proc *list, size_t n, dev_t tty, pid_t relay, int depth)
{
    struct proc *below = mem_zalloc((n + 1) * sizeof *below);
    bool waits = false;
    memcpy(below, list, n * sizeof *below);
    size_t first = 0;
    while (first < n && below[first].pid != relay)
        first++;
    if (first < n)
        proc_swap(&below[0], &below[first]);
    size_t found = first < n ? proc_below(below, n, 1) : 0;
    for (size_t i = 1; i < found && !waits; i++)
        waits = !below[i].ended && below[i].tty != 0 && below[i].tty != tty && below[i].foreground > 0 &&
                any_in_group(below[i].tty, below[i].foreground, depth + 1);
    free(below);
    return waits;
}

static bool waits_itself(const struct proc *list, size_t n, dev_t tty, pid_t pid, int depth)
{
    if (!any_thread(tty, pid))
        return false;
    return depth >= DEPTH_MAX || !has_master(pid) || behind_waits(list, n, tty, pid, depth);
}

static bool any_in_group(dev_t tty, pid_t group, int depth)
{
    struct proc *list;
    bool found = false;
    size_t n = proc_descendants(getpid(), &list);
    for (size_t i = 0; i < n && !found; i++)
        found = list[i].group == group && waits_itself(list, n, tty, list[i].pid, depth);
    free(list);
    return found;
}

/* Numbers and structures of system calls mean what they do here: not in a 32-bit program, and in none where
 * we ourselves run under an emulator. What can't be read is taken for the usual. */
static bool speaks_as_we(pid_t pid)
{
    char path[40], head[ELF_HEAD_SIZE];
    snprintf(path, sizeof path, "/proc/%ld/exe", (long)pid);
    int fd FD_AUTO = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t n = fd < 0 ? -1 : read(fd, head, sizeof head);
    return n < 0 || elf_is_ours(head, (size_t)n);
}

static enum waiting look(const struct pty *pty, pid_t shell, bool thorough)
{
    struct sleeping s;
    pid_t group = pty_foreground(pty);
    dev_t tty = number_of(pty);
    if (group == 0 || !proc_is_ours() || read_sleeping(shell, &s) < 0 || !speaks_as_we(group))
        return WAITING_UNKNOWN;
    if (group == shell && waits_for_terminal(tty, &s))
        return WAITING_SHELL;
    /* In the shell's own group: what it substitutes, x=$(cat). */
    if (group != shell && read_sleeping(group, &s) == 0 && waits_for_terminal(tty, &s) && !has_master(group))
        return WAITING_PROGRAM;
    return thorough && any_in_group(tty, group, 0) ? WAITING_PROGRAM : WAITING_NOT;
}

/* True when it has become somebody else for what it looks at. */
static bool look_as(const struct user *user)
{
    bool other = user && !user_is_self(user);
    if (other) {
        setfsgid(user->gid);
        setfsuid(user->uid);
    }
    return other;
}

static enum waiting look_as_self(bool other, enum waiting seen)
{
    if (other) {
        setfsuid(geteuid());
        setfsgid(getegid());
    }
    return seen;
}

enum waiting session_waiting(const struct pty *pty, pid_t shell, const struct user *user, bool thorough)
{
    bool other = look_as(user);
    return look_as_self(other, look(pty, shell, thorough));
}

/* ---- the word ---- */

static bool is_for_input(long call)
{
    static const long calls[] = {
        SYS_read,
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
        if (call == calls[i])
            return true;
    return false;
}

/* Whatever it waits with, `read` with a time limit or without. The code that it is given it reads by another
 * descriptor. */
static enum waiting reads_channel(const struct pty *channel, const struct sleeping *s)
{
    char path[40];
    struct stat input, ours;
    struct sleeping again;
    snprintf(path, sizeof path, "/proc/%ld/fd/0", (long)s->pid);
    if (!is_for_input(s->call) || stat(path, &input) < 0 || fstat(channel->slave, &ours) < 0 ||
        !S_ISCHR(input.st_mode) || input.st_rdev != ours.st_rdev)
        return WAITING_NOT;
    if (s->call == SYS_read && s->arg[0] != 0)
        return is_terminal(number_of(channel), s->pid, s->arg[0]) ? WAITING_CODE : WAITING_NOT;
    return read_sleeping(s->pid, &again) == 0 && strcmp(s->text, again.text) == 0 ? WAITING_SHELL
                                                                                  : WAITING_SOON;
}

static bool any_child_reads_word(const struct pty *channel, pid_t shell)
{
    struct sleeping s;
    struct proc *list;
    bool found = false;
    size_t n = proc_descendants(getpid(), &list);
    for (size_t i = 0; i < n && !found; i++)
        found = list[i].ppid == shell && read_sleeping(list[i].pid, &s) == 0 &&
                reads_channel(channel, &s) == WAITING_SHELL;
    free(list);
    return found;
}

static enum waiting look_for_word(const struct pty *channel, pid_t shell, bool children)
{
    struct sleeping s;
    if (!proc_is_ours() || read_sleeping(shell, &s) < 0)
        return WAITING_UNKNOWN;
    /* Where a shell stays: at its prompt, in the hook, or until a program ends. */
    if (!is_for_input(s.call) && s.call != SYS_wait4 && s.call != SYS_waitid)
        return WAITING_SOON;
    enum waiting w = reads_channel(channel, &s);
    if (w != WAITING_NOT)
        return w;
    if (children && any_child_reads_word(channel, shell))
        return WAITING_PROGRAM;
    return speaks_as_we(shell) ? WAITING_NOT : WAITING_UNKNOWN;
}

enum waiting session_waiting_for_word(const struct pty *channel, pid_t shell, const struct user *user,
                                      bool children)
{
    bool other = look_as(user);
    return look_as_self(other, look_for_word(channel, shell, children));
}
