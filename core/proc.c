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
#include <sys/wait.h>
#include <unistd.h>

#include "buf.h"
#include "io.h"
#include "mem.h"

/* Fields of /proc/PID/stat behind the name, whose closing parenthesis is the last one in the line
 * (a name may hold any bytes). */
static int parse_stat(const char *text, struct proc *p)
{
    const char *at = strrchr(text, ')');
    if (!at || sscanf(at + 1, " %c %d %d %d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
                      &p->state, &p->ppid, &p->group, &p->session, &p->start) != 5)
        return -1;
    return 0;
}

/* A /proc of another pid namespace, left mounted, speaks of other processes under the same numbers. */
static bool is_ours(void)
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
    char path[40];
    struct buf text BUF_AUTO = BUF_INIT;
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    if (io_read_file(AT_FDCWD, path, &text) < 0)
        return -1;
    p->pid = pid;
    return parse_stat(buf_str(&text), p);
}

int proc_read(pid_t pid, struct proc *p)
{
    return is_ours() ? read_stat(pid, p) : -1;
}

void proc_name(pid_t pid, char name[16])
{
    char path[40];
    struct buf text BUF_AUTO = BUF_INIT;
    snprintf(path, sizeof path, "/proc/%ld/comm", (long)pid);
    name[0] = '\0';
    if (pid > 0 && is_ours() && io_read_file(AT_FDCWD, path, &text) == 0)
        snprintf(name, 16, "%.*s", (int)strcspn(buf_str(&text), "\n"), buf_str(&text));
}

bool proc_link(pid_t pid, const char *name, char *path, size_t size)
{
    char link[48];
    snprintf(link, sizeof link, "/proc/%ld/%s", (long)pid, name);
    ssize_t n = is_ours() ? readlink(link, path, size - 1) : -1;
    if (n < 0)
        return false;
    path[n] = '\0';
    return true;
}

static size_t read_all(struct proc **list)
{
    DIR *dir = is_ours() ? opendir("/proc") : NULL;
    struct dirent *entry;
    size_t n = 0, cap = 0;
    *list = NULL;
    while (dir && (entry = readdir(dir))) {
        if (!isdigit((unsigned char)entry->d_name[0]))
            continue;
        if (n == cap) {
            cap = cap ? cap * 2 : 64;
            *list = mem_realloc(*list, cap * sizeof **list);
        }
        if (read_stat((pid_t)strtol(entry->d_name, NULL, 10), &(*list)[n]) == 0)
            n++;
    }
    if (dir)
        closedir(dir);
    return n;
}

static void swap(struct proc *a, struct proc *b)
{
    struct proc c = *a;
    *a = *b;
    *b = c;
}

/* Brings the descendants to the front, breadth first: [0, found) are descendants, those from `next` on have
 * not had their own children looked for. */
size_t proc_descendants(pid_t root, struct proc **list)
{
    size_t n = read_all(list), found = 0;
    for (size_t i = 0; i < n; i++)
        if ((*list)[i].ppid == root)
            swap(&(*list)[i], &(*list)[found++]);
    for (size_t next = 0; next < found; next++)
        for (size_t i = found; i < n; i++)
            if ((*list)[i].ppid == (*list)[next].pid)
                swap(&(*list)[i], &(*list)[found++]);
    return found;
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
