/* The system call in which a thread sleeps, where the kernel has no /proc/PID/syscall: it is stopped for a
 * moment, and its registers read.
 *
 * The program does not notice. What a stop breaks off the kernel begins anew, but for a few calls that end
 * with EINTR then, as they do for Ctrl-Z and `fg`; of those epoll_wait alone is what programs at a terminal
 * wait with, and who has an epoll is left alone. */
#ifndef APPLETS_BASH_SESSION_SESSION_TRACE_H
#define APPLETS_BASH_SESSION_SESSION_TRACE_H

#include <stdbool.h>
#include <sys/types.h>

/* Its number, -1 when it does not sleep in one, and its arguments. -1 with errno when that can't be told: it
 * may not be traced (the caller has to be above it, for Yama), is traced already, or has an epoll (errno is
 * EPERM then, too); and on other processors than x86-64. `again`: it was asked just before, and had none. */
int trace_sleeping(pid_t pid, bool again, long *call, unsigned long long arg[6]);

#endif
