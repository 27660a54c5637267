#include "session_trace.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dir_read.h"
#include "proc.h"

#ifdef __x86_64__

#define TRIES 5
#define TRIES_AGAIN 50 /* of one that was stopped just before */
#define BETWEEN_US 100 /* for a call that was broken off to begin anew */

/* Of a gVisor of 2022, for any stop: no signal that could have killed it. */
#define STOPPED_2022 0x7f

/* What is in the place of a result while the kernel is going to begin a call anew. */
#define RESTART_FIRST (-516)
#define RESTART_LAST (-512)

static bool has_epoll(pid_t pid)
{
    char path[48], target[32];
    const char *name;
    bool found = false;
    snprintf(path, sizeof path, "/proc/%ld/fd", (long)pid);
    DIR *dir DIR_AUTO = opendir(path);
    while (!found && (name = dir_next(dir))) {
        ssize_t n = readlinkat(dirfd(dir), name, target, sizeof target);
        found = n > 0 && memmem(target, (size_t)n, "[eventpoll]", 11);
    }
    return found || !dir;
}

/* The signal that is to be given back to it, 0: none. -1: it has ended, and whose child it is gets to know.
 */
static int wait_for_stop(pid_t pid)
{
    siginfo_t info;
    int status;
    while (waitid(P_PID, (id_t)pid, &info, WEXITED | WSTOPPED | WNOWAIT | __WALL) < 0)
        if (errno != EINTR)
            return -1;
    bool stopped = info.si_code == CLD_TRAPPED || info.si_code == CLD_STOPPED ||
                   (info.si_code == CLD_KILLED && info.si_status == STOPPED_2022);
    if (!stopped || waitpid(pid, &status, __WALL) != pid || !WIFSTOPPED(status))
        return -1;
    return status >> 16 == PTRACE_EVENT_STOP ? 0 : WSTOPSIG(status);
}

static int read_registers(pid_t pid, struct user_regs_struct *r)
{
    if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) < 0)
        return -1;
    ptrace(PTRACE_INTERRUPT, pid, NULL, NULL);
    int signal = wait_for_stop(pid);
    if (signal < 0)
        return -1;
    int done = (int)ptrace(PTRACE_GETREGS, pid, NULL, r);
    ptrace(PTRACE_DETACH, pid, NULL, (void *)(long)signal);
    return done;
}

int trace_sleeping(pid_t pid, bool again, long *call, unsigned long long arg[6])
{
    struct user_regs_struct r;
    struct proc p;
    *call = -1;
    for (int i = 0; i < (again ? TRIES_AGAIN : TRIES) && *call < 0; i++) {
        if (i > 0)
            usleep(BETWEEN_US);
        if (proc_read(pid, &p) < 0)
            return -1;
        if (p.state != 'S')
            continue;
        if (!again && has_epoll(pid)) {
            errno = EPERM;
            return -1;
        }
        if (read_registers(pid, &r) < 0)
            return -1;
        unsigned long long all[] = {r.rdi, r.rsi, r.rdx, r.r10, r.r8, r.r9};
        memcpy(arg, all, sizeof all);
        if ((long)r.rax >= RESTART_FIRST && (long)r.rax <= RESTART_LAST)
            *call = (long)r.orig_rax;
    }
    return 0;
}

#else

int trace_sleeping(pid_t pid, bool again, long *call, unsigned long long arg[6])
{
    (void)pid;
    (void)again;
    (void)call;
    (void)arg;
    errno = ENOSYS;
    return -1;
}

#endif
