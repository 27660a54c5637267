#include "mark.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "buf.h"
#include "io.h"
#include "mem.h"
#include "proc.h"

/* 15 bits that say that it is one of ours, 46 of the place, and one that keepers have. */
#define OURS (0x7462ull << 47)
#define PLACE_BITS (((1ull << 46) - 1) << 1)
#define KEEPER 1ull

static bool is_mark(unsigned long long limit)
{
    return limit >> 47 == OURS >> 47;
}

/* Where it stands: the first of these that this kernel lets us set. */
static const struct place {
    int limit;
    char name[24]; /* in /proc/PID/limits */
} places[] = {{RLIMIT_RTTIME, "\nMax realtime timeout "}, {RLIMIT_RSS, "\nMax resident set "}};
#define N_PLACES (sizeof places / sizeof *places)

/* FNV-1a. */
static void mix(unsigned long long *hash, unsigned long long value)
{
    for (int i = 0; i < 8; i++, value >>= 8)
        *hash = (*hash ^ (value & 0xff)) * 0x100000001b3ull;
}

unsigned long long mark_of(int dirfd)
{
    struct stat place, root;
    unsigned long long hash = 0xcbf29ce484222325ull;
    if (fstat(dirfd, &place) < 0 || stat("/", &root) < 0)
        return 0;
    mix(&hash, place.st_dev);
    mix(&hash, place.st_ino);
    mix(&hash, root.st_dev);
    mix(&hash, root.st_ino);
    mix(&hash, geteuid());
    return OURS | ((hash ^ hash >> 46) << 1 & PLACE_BITS);
}

/* Where it can't be had, orphans are not found. */
void mark_keeper(unsigned long long mark)
{
    struct rlimit limit;
    for (size_t i = 0; mark != 0 && i < N_PLACES && getrlimit(places[i].limit, &limit) == 0; i++) {
        if (limit.rlim_cur != RLIM_INFINITY && (limit.rlim_cur | KEEPER) != (mark | KEEPER))
            return;
        limit.rlim_cur = mark | KEEPER;
        if (setrlimit(places[i].limit, &limit) == 0)
            return;
    }
}

void mark_started(void)
{
    struct rlimit limit;
    for (size_t i = 0; i < N_PLACES; i++) {
        if (getrlimit(places[i].limit, &limit) < 0 || !is_mark(limit.rlim_cur))
            continue;
        limit.rlim_cur &= ~KEEPER;
        setrlimit(places[i].limit, &limit);
    }
}

/* ---- finding ---- */

/* Some kernels have no such file. */
static unsigned long long ask_limit(pid_t pid)
{
    struct rlimit limit;
    for (size_t i = 0; i < N_PLACES; i++) {
        if (prlimit(pid, places[i].limit, NULL, &limit) < 0)
            return 0;
        if (is_mark(limit.rlim_cur))
            return limit.rlim_cur;
    }
    return RLIM_INFINITY;
}

/* The soft limit that is a mark; RLIM_INFINITY where none is; 0: can't be read. */
static unsigned long long limit_of(pid_t pid)
{
    char path[40];
    struct buf text BUF_AUTO = BUF_INIT;
    snprintf(path, sizeof path, "/proc/%ld/limits", (long)pid);
    if (io_read_file(-1, path, &text) < 0)
        return ask_limit(pid);
    for (size_t i = 0; i < N_PLACES; i++) {
        const char *at = strstr(buf_str(&text), places[i].name);
        unsigned long long limit = at ? strtoull(at + strlen(places[i].name), NULL, 10) : 0;
        if (is_mark(limit))
            return limit;
    }
    return text.len > 0 ? RLIM_INFINITY : 0;
}

bool mark_is_seen(void)
{
    return is_mark(limit_of(getpid()));
}

/* A server or keeper that was killed keeps its children for a moment longer than its sockets. */
static bool is_going(pid_t pid, unsigned long long limit)
{
    struct proc p;
    return (limit & KEEPER) && proc_read(pid, &p) == 0 && p.ending;
}

/* Read anew: between two looks at the list its parent may have ended, or it has been given to another one. */
static bool is_orphan(const struct proc *p, unsigned long long mark)
{
    struct proc now;
    if (p->ended || limit_of(p->pid) != mark || proc_read(p->pid, &now) < 0 || now.start != p->start ||
        now.ppid == getpid())
        return false;
    unsigned long long parent = limit_of(now.ppid);
    if (parent == 0)
        return now.ppid == 1;
    return (parent | KEEPER) != (mark | KEEPER) || is_going(now.ppid, parent);
}

size_t mark_orphans(unsigned long long mark, struct proc **list)
{
    size_t n = mark ? proc_all(list) : (*list = NULL, 0), found = 0;
    struct proc *all = *list;
    for (size_t i = 0; i < n; i++)
        if (is_orphan(&all[i], mark))
            proc_swap(&all[i], &all[found++]);
    return proc_below(all, n, found);
}
