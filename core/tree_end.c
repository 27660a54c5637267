#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io.h"
#include "loop.h"
#include "mem.h"
#include "proc.h"

#define TICK_MS 10
#define PID_MOST 4194304  /* the kernel's own bound */
#define PIDS_A_TICK 32768 /* where they have to be asked for one by one */

struct tree_end {
    struct loop_source *timer;
    long long kill_at, give_up_at;
    pid_t group;
    pid_t first_pid; /* without /proc */
    bool (*spare)(void *arg, pid_t pid);
    void (*done)(void *arg, size_t left);
    void *arg;
};

static bool is_spared(const struct tree_end *t, pid_t pid)
{
    return t->spare && t->spare(t->arg, pid);
}

/* Works without /proc as well, as long as nothing is spared. */
static bool has_no_children(void)
{
    siginfo_t info;
    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 && errno == ECHILD;
}

bool proc_group_is_ours(pid_t group)
{
    siginfo_t info;
    return group > 0 && waitid(P_PGID, (id_t)group, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

/* The kernel says of any number whether it is that of a child of ours, without /proc as well. */
static bool is_running_child(pid_t pid)
{
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0;
}

static size_t signal_numbers(const struct tree_end *t, int signal, pid_t first, pid_t n)
{
    size_t count = 0;
    for (pid_t pid = first; pid < first + n; pid++) {
        if (!is_running_child(pid) || is_spared(t, pid))
            continue;
        count++;
        if (signal != 0)
            kill(pid, signal);
    }
    return count;
}

/* Signals the children among the numbers behind this process's own, where its descendants are as a rule, and
 * among as many others, which are others each time. A descendant whose parent has ended is a child. How many
 * there are. */
static size_t signal_children(struct tree_end *t, int signal)
{
    size_t count = signal_numbers(t, signal, getpid() + 1, PIDS_A_TICK);
    t->first_pid = t->first_pid + PIDS_A_TICK < PID_MOST ? t->first_pid + PIDS_A_TICK : 1;
    return count + signal_numbers(t, signal, t->first_pid, PIDS_A_TICK);
}

/* Signals the descendants (with `all`) or just the children, but for the spared ones and what hangs below
 * those. How many descendants there are, also such as were not or may not be signalled; signal 0 only counts.
 * The list has parents before their children. */
static size_t signal_all(struct tree_end *t, int signal, bool all)
{
    struct proc *list;
    /* The group at one stroke: none of it can fork itself out of the way. */
    bool group = signal != 0 && proc_group_is_ours(t->group) && kill(-t->group, signal) == 0;
    size_t n = proc_descendants(getpid(), &list), count = 0;
    bool *spared MEM_AUTO = mem_zalloc(n);
    for (size_t i = 0; i < n; i++) {
        bool child = list[i].ppid == getpid();
        spared[i] = child && is_spared(t, list[i].pid);
        for (size_t j = 0; j < i && !spared[i]; j++)
            spared[i] = spared[j] && list[j].pid == list[i].ppid;
        if (spared[i] || list[i].state == 'Z')
            continue;
        bool wanted = signal != 0 && (all || child) && !(group && list[i].group == t->group);
        if (!wanted || proc_signal(&list[i], signal) == 0 || errno != ESRCH)
            count++;
    }
    free(list);
    if (n > 0 || proc_is_ours())
        return count;
    count = signal_children(t, signal);
    return count > 0 || t->spare ? count : 1; /* it has children, among other numbers */
}

static void finish(struct tree_end *t, size_t left)
{
    void (*done)(void *, size_t) = t->done;
    void *arg = t->arg;
    loop_remove(t->timer);
    free(t);
    done(arg, left);
}

static void tick(void *arg)
{
    struct tree_end *t = arg;
    long long now = now_ms();
    bool none = has_no_children(), last = now >= t->give_up_at;
    size_t left = none ? 0 : 1;
    if (!none && (t->spare || last || now >= t->kill_at))
        left = signal_all(t, last || now < t->kill_at ? 0 : SIGKILL, false);
    if (none || (t->spare && left == 0) || last)
        finish(t, left);
    else
        loop_timer_set(t->timer, TICK_MS);
}

struct tree_end *tree_end(struct loop *loop, pid_t group, int grace_ms, int limit_ms,
                          bool (*spare)(void *arg, pid_t pid), void (*done)(void *arg, size_t left),
                          void *arg)
{
    struct tree_end *t = mem_zalloc(sizeof *t);
    t->kill_at = now_ms() + grace_ms;
    t->give_up_at = now_ms() + limit_ms;
    t->group = group;
    t->first_pid = 1;
    t->spare = spare;
    t->done = done;
    t->arg = arg;
    if (grace_ms > 0) {
        signal_all(t, SIGTERM, true);
        signal_all(t, SIGCONT, true);
    }
    t->timer = loop_timer(loop, 1, tick, t);
    return t;
}
