#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "io.h"
#include "loop.h"
#include "mem.h"
#include "proc.h"

#define LOOK_MS 500 /* where a kernel has no pid descriptors (5.3) */

struct watch {
    pid_t pid;
    int fd;
    struct loop_source *source;
    void (*gone)(void *arg);
    void *arg;
};

static void tell(struct watch *w)
{
    loop_remove(w->source);
    io_close(&w->fd);
    w->gone(w->arg);
    free(w);
}

static void on_end(void *arg, int events)
{
    (void)events;
    tell(arg);
}

static void look(void *arg)
{
    struct watch *w = arg;
    if (kill(w->pid, 0) < 0 && errno == ESRCH)
        tell(w);
    else
        loop_timer_set(w->source, LOOK_MS);
}

void proc_watch(struct loop *loop, pid_t pid, void (*gone)(void *arg), void *arg)
{
    struct watch *w = mem_zalloc(sizeof *w);
    *w = (struct watch){.pid = pid, .fd = -1, .gone = gone, .arg = arg};
#ifdef SYS_pidfd_open
    w->fd = (int)syscall(SYS_pidfd_open, pid, 0);
#endif
    if (w->fd >= 0)
        w->source = loop_fd(loop, w->fd, LOOP_READ, on_end, w);
    else
        w->source = loop_timer(loop, 1, look, w);
}
