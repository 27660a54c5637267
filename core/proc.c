#include "proc.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "buf.h"
#include "io.h"
#include "mem.h"

#define SHOWN_MOST 5
#define EXITING 0x4 /* PF_EXITING of linux/sched.h, in the field of flags */
/* Descendants: a look at all processes takes a third of the time of one at the children of each, from then
 * on.
 */
#define MANY 64

/* Fields of /proc/PID/stat behind the name, whose closing parenthesis is the last one in the line (a name may
 * hold any bytes): the state, and numbers from the parent to the time of the start. An ended process still
 * counts its first thread, which waits to be reaped; so does one whose other threads run on. */
static int parse_stat(const char *text, struct proc *p)
{
    long long numbers[19];
    const char *at = strrchr(text, ')');
    if (!at || at[1] != ' ' || at[2] == '\0')
        return -1;
    p->state = at[2];
    at += 3;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        char *end;
        numbers[i] = strtoll(at, &end, 10);
        if (end == at)
            return -1;
        at = end;
    }
    p->ppid = (pid_t)numbers[0];
    p->group = (pid_t)numbers[1];
    p->session = (pid_t)numbers[2];
    p->tty = makedev((unsigned)numbers[3] >> 8 & 0xFFF,
                     ((unsigned)numbers[3] & 0xFF) | ((unsigned)numbers[3] >> 12 & 0xFFF00));
    p->foreground = (pid_t)numbers[4];
    p->ended = (p->state == 'Z' || p->state == 'X') && numbers[16] < 2;
    p->ending = (numbers[5] & EXITING) && numbers[16] < 2;
    p->start = (unsigned long long)numbers[18];
    return 0;
}

bool proc_is_ours(void)
{
    char self[16];
    ssize_t n = readlink("/proc/self", self, sizeof self - 1);
    if (n < 0)
        return false;
    self[n] = '\0';
    return strtol(self, NULL, 10) == getpid();
}

static int read_stat(pid_t pid, struct proc *p)
{
    char path[40], text[1024]; /* the line comes whole by one read */
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    int fd FD_AUTO = openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (n < 0)
        return -1;
    text[n] = '\0';
    p->pid = pid;
    return parse_stat(text, p);
}

long long proc_uptime_ms(void)
{
    struct buf text BUF_AUTO = BUF_INIT;
    return io_read_file(AT_FDCWD, "/proc/uptime", &text) < 0
               ? 0
               : (long long)(strtod(buf_str(&text), NULL) * 1000);
}

int proc_read(pid_t pid, struct proc *p)
{
    return proc_is_ours() ? read_stat(pid, p) : -1;
}

void proc_name(pid_t pid, char name[16])
{
    char path[40];
    struct buf text BUF_AUTO = BUF_INIT;
    snprintf(path, sizeof path, "/proc/%ld/comm", (long)pid);
    name[0] = '\0';
    if (pid > 0 && proc_is_ours() && io_read_file(AT_FDCWD, path, &text) == 0)
        snprintf(name, 16, "%.*s", (int)strcspn(buf_str(&text), "\n"), buf_str(&text));
}

/* What stands behind a field's name, hexadecimal; 0 without the field. */
static unsigned long long mask(const char *status, const char *field)
{
    const char *at = strstr(status, field);
    return at ? strtoull(at + strlen(field), NULL, 16) : 0;
}

static bool is_in_mask(const char *status, const char *field, int signal)
{
    return mask(status, field) >> (signal - 1) & 1;
}

int proc_handles(pid_t pid, int signal)
{
    char path[40];
    struct buf text BUF_AUTO = BUF_INIT;
    snprintf(path, sizeof path, "/proc/%ld/status", (long)pid);
    if (!proc_is_ours() || io_read_file(AT_FDCWD, path, &text) < 0 || !strstr(buf_str(&text), "\nSigIgn:"))
        return -1;
    return is_in_mask(buf_str(&text), "\nSigIgn:", signal)   ? PROC_IGNORES
           : is_in_mask(buf_str(&text), "\nSigCgt:", signal) ? PROC_CATCHES
                                                             : 0;
}

bool proc_is_signalled(pid_t pid)
{
    char path[40];
    struct buf text BUF_AUTO = BUF_INIT;
    snprintf(path, sizeof path, "/proc/%ld/status", (long)pid);
    if (!proc_is_ours() || io_read_file(AT_FDCWD, path, &text) < 0)
        return false;
    const char *status = buf_str(&text);
    return (mask(status, "\nSigPnd:") | mask(status, "\nShdPnd:")) & ~mask(status, "\nSigBlk:");
}

bool proc_reaps(pid_t pid)
{
    char path[40];
    struct buf text BUF_AUTO = BUF_INIT;
    snprintf(path, sizeof path, "/proc/%ld/status", (long)pid);
    return !proc_is_ours() || io_read_file(AT_FDCWD, path, &text) < 0 ||
           is_in_mask(buf_str(&text), "\nSigBlk:", SIGCHLD) ||
           is_in_mask(buf_str(&text), "\nSigIgn:", SIGCHLD) ||
           is_in_mask(buf_str(&text), "\nSigCgt:", SIGCHLD);
}

bool proc_link(pid_t pid, const char *name, char *path, size_t size)
{
    char link[48];
    snprintf(link, sizeof link, "/proc/%ld/%s", (long)pid, name);
    ssize_t n = proc_is_ours() ? readlink(link, path, size - 1) : -1;
    if (n < 0)
        return false;
    path[n] = '\0';
    return true;
}

/* ---- descendants ---- */

struct list {
    struct proc *at;
    size_t n, cap;
};

static struct proc *list_add(struct list *l, pid_t pid)
{
    if (l->n == l->cap) {
        l->cap = l->cap ? l->cap * 2 : 16;
        l->at = mem_realloc(l->at, l->cap * sizeof *l->at);
    }
    return read_stat(pid, &l->at[l->n]) == 0 ? &l->at[l->n++] : NULL;
}

/* The kernel lists the children of each thread, so that finding a small tree costs little however many
 * processes there are. Not every kernel is built with that. */
static bool children_are_listed(void)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/task/%ld/children", (long)getpid(), (long)getpid());
    return faccessat(AT_FDCWD, path, F_OK, 0) == 0;
}

/* A child that has become an orphan meanwhile is the root's, or will be found next time; what has neither
 * parent is somebody else under the same number. */
static void add_children_of_thread(struct list *l, int task, const char *tid, pid_t parent, pid_t root)
{
    char path[32], *end;
    struct buf text BUF_AUTO = BUF_INIT;
    snprintf(path, sizeof path, "%.16s/children", tid);
    if (io_read_file(task, path, &text) < 0)
        return;
    for (const char *at = buf_str(&text);; at = end) {
        long pid = strtol(at, &end, 10);
        if (end == at)
            return;
        const struct proc *p = list_add(l, (pid_t)pid);
        if (p && p->ppid != parent && p->ppid != root)
            l->n--;
    }
}

static void add_children(struct list *l, pid_t parent, pid_t root)
{
    char path[40];
    struct dirent *entry;
    snprintf(path, sizeof path, "/proc/%ld/task", (long)parent);
    DIR *dir = opendir(path);
    while (dir && (entry = readdir(dir)))
        if (isdigit((unsigned char)entry->d_name[0]))
            add_children_of_thread(l, dirfd(dir), entry->d_name, parent, root);
    if (dir)
        closedir(dir);
}

static void add_all(struct list *l)
{
    DIR *dir = opendir("/proc");
    struct dirent *entry;
    while (dir && (entry = readdir(dir)))
        if (isdigit((unsigned char)entry->d_name[0]))
            list_add(l, (pid_t)strtol(entry->d_name, NULL, 10));
    if (dir)
        closedir(dir);
}

void proc_swap(struct proc *a, struct proc *b)
{
    struct proc c = *a;
    *a = *b;
    *b = c;
}

size_t proc_all(struct proc **list)
{
    struct list l = {0};
    if (proc_is_ours())
        add_all(&l);
    *list = l.at;
    return l.n;
}

/* Breadth first: those from `next` on have not had their own children looked for. */
size_t proc_below(struct proc *list, size_t n, size_t found)
{
    for (size_t next = 0; next < found; next++)
        for (size_t i = found; i < n; i++)
            if (list[i].ppid == list[next].pid)
                proc_swap(&list[i], &list[found++]);
    return found;
}

static void keep_descendants(struct list *l, pid_t root)
{
    size_t found = 0;
    for (size_t i = 0; i < l->n; i++)
        if (l->at[i].ppid == root)
            proc_swap(&l->at[i], &l->at[found++]);
    l->n = proc_below(l->at, l->n, found);
}

size_t proc_descendants(pid_t root, struct proc **list)
{
    struct list l = {0};
    if (proc_is_ours() && children_are_listed()) {
        add_children(&l, root, root);
        for (size_t i = 0; i < l.n && l.n < MANY; i++)
            add_children(&l, l.at[i].pid, root);
    }
    if (proc_is_ours() && (l.n >= MANY || !children_are_listed())) {
        l.n = 0;
        add_all(&l);
        keep_descendants(&l, root);
    }
    *list = l.at;
    return l.n;
}

void proc_put_living(struct buf *out)
{
    struct proc *list;
    size_t n = proc_descendants(getpid(), &list), shown = 0;
    for (size_t i = 0; i < n && shown < SHOWN_MOST; i++) {
        char name[16];
        if (list[i].ended)
            continue;
        proc_name(list[i].pid, name);
        for (char *c = name; *c; c++) /* it may be anything */
            *c = *c < ' ' || *c > '~' ? '?' : *c;
        buf_addf(out, "%s%s %ld", shown++ == 0 ? " (" : ", ", name, (long)list[i].pid);
    }
    buf_adds(out, shown == 0 ? "" : shown < n ? ", …)" : ")");
    free(list);
}

/* The second number of statm, which everybody may read: resident pages. */
long long proc_memory_kb(pid_t pid)
{
    char path[40], *end;
    struct buf text BUF_AUTO = BUF_INIT;
    snprintf(path, sizeof path, "/proc/%ld/statm", (long)pid);
    if (!proc_is_ours() || io_read_file(AT_FDCWD, path, &text) < 0)
        return -1;
    strtoll(buf_str(&text), &end, 10);
    return strtoll(end, NULL, 10) * (sysconf(_SC_PAGESIZE) / 1024);
}

static bool is_same(const struct proc *p)
{
    struct proc now;
    return read_stat(p->pid, &now) == 0 && now.start == p->start;
}

int proc_signal(const struct proc *p, int signal)
{
#ifdef SYS_pidfd_open
    int fd FD_AUTO = (int)syscall(SYS_pidfd_open, p->pid, 0);
    if (fd >= 0 && is_same(p) && syscall(SYS_pidfd_send_signal, fd, signal, NULL, 0) == 0)
        return 0;
#endif
    return is_same(p) ? kill(p->pid, signal) : (errno = ESRCH, -1);
}
