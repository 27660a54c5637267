#include "session_wait.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <termios.h>
#include <unistd.h>

#include "dir_read.h"
#include "io.h"
#include "mem.h"
#include "osinfo.h"
#include "proc.h"
#include "session_peer.h"
#include "session_sleep.h"

#define DEPTH_MAX 8 /* terminals in terminals */
#define PTS_MAJOR 136

static dev_t number_of(const struct pty *pty)
{
    struct stat st;
    return fstat(pty->slave, &st) == 0 ? st.st_rdev : 0;
}

/* Descriptor fd of the process is this terminal, by its own name or as /dev/tty. */
static bool is_terminal(const void *tty, pid_t pid, unsigned long long fd)
{
    char path[48];
    struct stat there;
    snprintf(path, sizeof path, "/proc/%ld/fd/%llu", (long)pid, fd);
    return stat(path, &there) == 0 && S_ISCHR(there.st_mode) &&
           (there.st_rdev == *(const dev_t *)tty || there.st_rdev == makedev(5, 0));
}

static bool waits_for_terminal(dev_t tty, const struct sleeping *s)
{
    return sleeping_for(s, is_terminal, &tty) && !sleeping_briefly(s) && sleeping_still(s);
}

static bool waits_for_peer(const struct sleeping *s)
{
    return sleeping_for(s, peer_is_another, NULL);
}

/* The thread that waits for input from the terminal: one other than the first may be the one. */
static bool find_reader(dev_t tty, pid_t pid, struct sleeping *s)
{
    char path[40];
    const char *name;
    bool found = false;
    snprintf(path, sizeof path, "/proc/%ld/task", (long)pid);
    DIR *dir DIR_AUTO = opendir(path);
    while (!found && (name = dir_next(dir)))
        found = sleeping_read((pid_t)strtol(name, NULL, 10), s) == 0 && waits_for_terminal(tty, s);
    return found;
}

/* So does something in the process that another one may have it do: beside the terminal, or in a thread
 * beside the one that reads it. */
static bool hears_others(pid_t pid, const struct sleeping *reader)
{
    char path[40];
    struct sleeping s;
    const char *name;
    bool found = waits_for_peer(reader);
    snprintf(path, sizeof path, "/proc/%ld/task", (long)pid);
    DIR *dir DIR_AUTO = opendir(path);
    while (!found && (name = dir_next(dir)))
        found = sleeping_read((pid_t)strtol(name, NULL, 10), &s) == 0 && s.pid != reader->pid &&
                (sleeping_is_running(&s) || waits_for_peer(&s));
    return found;
}

/* What a program waits for: nothing of a person's, the person at the terminal, or what somebody says to whom
 * it passes the terminal on and who can't be seen. */
enum wait_for { FOR_NOBODY, FOR_PERSON, FOR_FAR_END };

static enum wait_for reader_waits(pid_t pid, const struct sleeping *reader)
{
    enum wait_for w = hears_others(pid, reader) ? FOR_FAR_END : FOR_PERSON;
    return sleeping_still(reader) ? w : FOR_NOBODY;
}

/* ---- terminals behind the terminal ---- */

bool session_passes_on(pid_t pid)
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

static enum wait_for group_waits(dev_t tty, pid_t group, int depth, pid_t *who);
static enum wait_for process_waits(const struct proc *list, size_t n, dev_t tty, pid_t pid, int depth,
                                   pid_t *who);

/* Its standard input, 0 when that is none: some kernels tell of no process which terminal it has (gVisor). */
static dev_t terminal_of(pid_t pid)
{
    char path[48];
    struct stat there;
    snprintf(path, sizeof path, "/proc/%ld/fd/0", (long)pid);
    return stat(path, &there) == 0 && S_ISCHR(there.st_mode) && major(there.st_rdev) == PTS_MAJOR
               ? there.st_rdev
               : 0;
}

/* Nor do they tell who is in the foreground there: it is whoever reads, since another one would be stopped.
 */
static enum wait_for session_waits(const struct proc *list, size_t n, pid_t session, int depth)
{
    dev_t tty = terminal_of(session);
    enum wait_for w = FOR_NOBODY;
    pid_t who;
    for (size_t i = 0; tty != 0 && i < n && w != FOR_PERSON; i++) {
        if (list[i].ended || list[i].session != session)
            continue;
        enum wait_for its = process_waits(list, n, tty, list[i].pid, depth, &who);
        w = its == FOR_NOBODY ? w : its;
    }
    return w;
}

/* What such a program waits for is what those wait for who are behind it: whoever is in the foreground of a
 * terminal other than its own. Without one it is about to end; which of several is shown is not known. */
static enum wait_for behind_waits(const struct proc *list, size_t n, dev_t tty, pid_t relay, int depth)
{
    struct proc *below = mem_zalloc((n + 1) * sizeof *below);
    unsigned seen = 0;
    pid_t who;
    memcpy(below, list, n * sizeof *below);
    size_t first = 0;
    while (first < n && below[first].pid != relay)
        first++;
    if (first < n)
        proc_swap(&below[0], &below[first]);
    size_t found = first < n ? proc_below(below, n, 1) : 0;
    for (size_t i = 1; i < found; i++) {
        const struct proc *p = &below[i];
        if (p->ended || p->session != p->pid || p->tty == tty)
            continue;
        if (p->tty != 0 && p->foreground > 0)
            seen |= 1u << group_waits(p->tty, p->foreground, depth + 1, &who);
        else if (p->tty == 0 && below[0].tty == 0 && terminal_of(p->pid) != 0)
            seen |= 1u << session_waits(list, n, p->pid, depth + 1);
    }
    free(below);
    return seen == 1u << FOR_PERSON                ? FOR_PERSON
           : seen == 1u << FOR_NOBODY || seen == 0 ? FOR_NOBODY
                                                   : FOR_FAR_END;
}

/* It can't be looked at, as what runs with another user's rights can't: sudo and su, seen by their user. */
static bool is_hidden(pid_t pid)
{
    struct sleeping s;
    return sleeping_read(pid, &s) < 0 && (errno == EACCES || errno == EPERM);
}

/* Who waits for a person, a process or a thread of it, is `who`. */
static enum wait_for process_waits(const struct proc *list, size_t n, dev_t tty, pid_t pid, int depth,
                                   pid_t *who)
{
    struct sleeping reader;
    if (!find_reader(tty, pid, &reader))
        return FOR_NOBODY;
    if (depth < DEPTH_MAX && session_passes_on(pid))
        return behind_waits(list, n, tty, pid, depth);
    *who = reader.pid;
    return reader_waits(pid, &reader);
}

/* Those in the foreground, and those that were handed the terminal though it isn't theirs (the servers of
 * multiplexers). */
static enum wait_for group_waits(dev_t tty, pid_t group, int depth, pid_t *who)
{
    struct proc *list;
    enum wait_for w = FOR_NOBODY;
    size_t n = proc_descendants(getpid(), &list);
    for (size_t i = 0; i < n && w != FOR_PERSON; i++) {
        if (list[i].ended || (list[i].group != group && list[i].tty != 0))
            continue;
        enum wait_for its = list[i].group == group && is_hidden(list[i].pid)
                                ? FOR_FAR_END
                                : process_waits(list, n, tty, list[i].pid, depth, who);
        w = its == FOR_NOBODY ? w : its;
    }
    free(list);
    return w;
}

/* A program that makes lines itself and reads none has handed the terminal to another one: to the server of a
 * multiplexer, which somebody else may have started. Its word is what it waits for, or a signal. */
static bool has_handed_on(const struct pty *pty, pid_t pid)
{
    struct termios modes;
    struct sleeping s;
    if (tcgetattr(pty->slave, &modes) < 0 || (modes.c_lflag & ICANON) || sleeping_read(pid, &s) < 0)
        return false;
#ifdef SYS_pause
    if (s.call == SYS_pause)
        return true;
#endif
    return s.call == SYS_rt_sigsuspend || (waits_for_peer(&s) && sleeping_still(&s));
}

/* Numbers and structures of system calls mean what they do here: not in a 32-bit program, and in none where
 * we ourselves run under an emulator. What can't be read is taken for the usual. */
static bool speaks_as_we(pid_t pid)
{
    char path[40], head[ELF_HEAD_SIZE];
    snprintf(path, sizeof path, "/proc/%ld/exe", (long)pid);
    int fd FD_AUTO = openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t n = fd < 0 ? -1 : read(fd, head, sizeof head);
    return n < 0 || elf_is_ours(head, (size_t)n);
}

static enum waiting look(const struct pty *pty, pid_t shell, enum look how)
{
    struct sleeping s;
    pid_t group = pty_foreground(pty);
    dev_t tty = number_of(pty);
    bool thorough = how == LOOK_AT_ALL;
    if (group == 0 || !proc_is_ours() || sleeping_read(shell, &s) < 0 || !speaks_as_we(group))
        return WAITING_UNKNOWN;
    if (group == shell && waits_for_terminal(tty, &s) && (!thorough || !session_passes_on(shell)))
        return WAITING_SHELL;
    enum wait_for w = FOR_NOBODY;
    pid_t who = 0;
    /* In the shell's own group: what it substitutes, x=$(cat). */
    if (group != shell && sleeping_read(group, &s) == 0 && waits_for_terminal(tty, &s) &&
        !session_passes_on(group))
        w = reader_waits(group, &s);
    else if (thorough)
        w = group_waits(tty, group, 0, &who);
    /* The shell may have got there since it was looked at. */
    if (w == FOR_PERSON && who == shell)
        return WAITING_SHELL;
    if (w == FOR_NOBODY && thorough && group != shell && has_handed_on(pty, group))
        w = FOR_FAR_END;
    return w == FOR_PERSON ? WAITING_PROGRAM : w == FOR_FAR_END ? WAITING_FAR_END : WAITING_NOT;
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

enum waiting session_waiting(const struct pty *pty, pid_t shell, const struct user *user, enum look how)
{
    bool other = look_as(user);
    sleeping_may_be_stopped(how > LOOK_FROM_AFAR);
    enum waiting w = look_as_self(other, look(pty, shell, how));
    sleeping_may_be_stopped(false);
    return w;
}

bool session_reads_all(pid_t pid, const struct user *user)
{
    struct sleeping s;
    bool other = look_as(user);
    bool all = sleeping_read(pid, &s) == 0 && s.call == SYS_read && s.arg[2] > 1;
    look_as_self(other, WAITING_NOT);
    return all;
}

enum unsure session_wait_is_unsure(const struct pty *pty, pid_t program, const struct user *user,
                                   enum look how)
{
    struct sleeping s;
    dev_t tty = number_of(pty);
    enum unsure unsure = UNSURE_NOT;
    bool other = look_as(user);
    sleeping_may_be_stopped(how > LOOK_FROM_AFAR);
    if (sleeping_read(program, &s) < 0)
        unsure = UNSURE_NOT;
    else if (sleeping_for(&s, is_terminal, &tty))
        unsure = hears_others(program, &s) ? UNSURE_HEARS : sleeping_briefly(&s) ? UNSURE_POLLS : UNSURE_NOT;
    else if (sleeping_nap(&s) && pty_foreground(pty) == program)
        unsure = UNSURE_NAPS;
    sleeping_may_be_stopped(false);
    look_as_self(other, WAITING_NOT);
    return unsure;
}

/* ---- the word ---- */

/* Whatever it waits with, `read` with a time limit or without. The code that it is given it reads by another
 * descriptor than its input. */
static enum waiting reads_channel(const struct pty *channel, const struct sleeping *s)
{
    dev_t tty = number_of(channel);
    if (!sleeping_for_input(s) || tty == 0)
        return WAITING_NOT;
    if (s->call == SYS_read && s->arg[0] != 0)
        return is_terminal(&tty, s->pid, s->arg[0]) ? WAITING_CODE : WAITING_NOT;
    if (!is_terminal(&tty, s->pid, 0))
        return WAITING_NOT;
    return sleeping_still(s) ? WAITING_SHELL : WAITING_SOON;
}

/* A copy of a shell, which may read it as code too. */
static bool waits_for_word(const struct pty *channel, const struct sleeping *s)
{
    enum waiting w = reads_channel(channel, s);
    return w == WAITING_SHELL || w == WAITING_CODE;
}

static bool any_child_reads_word(const struct pty *channel, pid_t shell)
{
    struct sleeping s;
    struct proc *list;
    bool found = false;
    size_t n = proc_descendants(getpid(), &list);
    for (size_t i = 0; i < n && !found; i++)
        found = list[i].ppid == shell && sleeping_read(list[i].pid, &s) == 0 && waits_for_word(channel, &s);
    free(list);
    return found;
}

static enum waiting look_for_word(const struct pty *channel, pid_t shell, bool children)
{
    struct sleeping s;
    if (!proc_is_ours() || sleeping_read(shell, &s) < 0)
        return WAITING_UNKNOWN;
    /* Where a shell stays: at its prompt, in the hook, or until a program ends. */
    if (!sleeping_for_input(&s) && s.call != SYS_wait4 && s.call != SYS_waitid && s.call != SYS_rt_sigsuspend)
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
    sleeping_may_be_stopped(true);
    enum waiting w = look_as_self(other, look_for_word(channel, shell, children));
    sleeping_may_be_stopped(false);
    return w;
}
