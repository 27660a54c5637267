#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io.h"
#include "loop.h"
#include "mark.h"
#include "mem.h"
#include "proc.h"

#define TICK_MS 10
#define STOP_ROUNDS 10    /* to find what was started while the others were being stopped */
#define LONGEST_MS 30000  /* in all, however it goes on */
#define PID_MOST 4194304  /* the kernel's own bound */
#define PIDS_A_TICK 32768 /* where they have to be asked for one by one */
#define NONE_TICKS 20     /* nobody was found where children are as a rule: others are looked for */

struct tree_end {
    struct loop_source *timer;
    long long kill_at, give_up_at, end_at; /* give_up_at: where nothing goes on */
    struct proc_decline decline;           /* from when all are killed on */
    struct tree_end_options how;
    pid_t first_pid; /* without /proc */
    int none;        /* looks in a row that found nobody, there */
    void (*done)(void *arg, size_t left);
    void *arg;
};

static bool is_spared(const struct tree_end *t, pid_t pid)
{
    return t->how.spare && t->how.spare(t->arg, pid);
}

/* Works without /proc as well, as long as nothing is spared. */
static bool has_no_children(void)
{
    siginfo_t info;
    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 && errno == ECHILD;
}

bool proc_goes_down(struct proc_decline *d, size_t n, int patience_ms)
{
    if (d->least_at == 0 || n < d->least) {
        d->least = n;
        d->least_at = now_ms();
    }
    return now_ms() - d->least_at < patience_ms;
}

bool proc_group_is_ours(pid_t group)
{
    siginfo_t info;
    return group > 0 && waitid(P_PGID, (id_t)group, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

void proc_reap(int ms)
{
    long long until = now_ms() + ms;
    for (pid_t pid; (pid = waitpid(-1, NULL, WNOHANG)) >= 0 && now_ms() < until;)
        if (pid == 0)
            usleep(1000);
}

/* ---- without /proc ---- */

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
        if (signal == SIGTERM)
            kill(pid, SIGCONT);
    }
    return count;
}

/* The number that a process has which is started now; 0: none can be. */
static pid_t newest_number(void)
{
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    if (pid > 0)
        waitpid(pid, NULL, 0);
    return pid < 0 ? 0 : pid;
}

/* Signals the children among the numbers between this process's own and the newest. Where those are many, or
 * it has begun at 1 again: among those behind its own, where its descendants are as a rule, and among as many
 * others, which are others each time. A descendant whose parent has ended is a child. How many there are. */
static size_t signal_children(struct tree_end *t, int signal)
{
    pid_t own = getpid(), between = newest_number() - own;
    bool few = between > 0 && between <= PIDS_A_TICK;
    size_t count = signal_numbers(t, signal, own + 1, few ? between : PIDS_A_TICK);
    t->first_pid = t->first_pid + PIDS_A_TICK < PID_MOST ? t->first_pid + PIDS_A_TICK : 1;
    t->none = few && count == 0 ? t->none + 1 : 0;
    if (!few || t->none >= NONE_TICKS) /* the numbers may have gone round since */
        count += signal_numbers(t, signal, t->first_pid, PIDS_A_TICK);
    return count > 0 || t->how.spare ? count : 1; /* it has children, among other numbers */
}

/* ---- with it ---- */

/* Those are looked for among all processes: only as long as there are some. */
static size_t add_orphans(struct tree_end *t, struct proc **list, size_t n)
{
    struct proc *orphans;
    size_t more = mark_orphans(t->how.mark, &orphans);
    if (more == 0)
        t->how.mark = 0;
    *list = mem_realloc(*list, (n + more) * sizeof **list);
    for (size_t i = 0; i < more; i++)
        if (!orphans[i].ended)
            (*list)[n++] = orphans[i];
    free(orphans);
    return n;
}

/* Who is to end: the descendants that live, but for the spared ones and what hangs below those. The list has
 * parents before their children. */
static size_t list_victims(struct tree_end *t, struct proc **list)
{
    size_t n = proc_descendants(getpid(), list), kept = 0;
    struct proc *all = *list;
    bool *spared MEM_AUTO = mem_zalloc(n);
    for (size_t i = 0; i < n && t->how.spare; i++) {
        spared[i] = all[i].ppid == getpid() && is_spared(t, all[i].pid);
        for (size_t j = 0; j < i && !spared[i]; j++)
            spared[i] = spared[j] && all[j].pid == all[i].ppid;
    }
    for (size_t i = 0; i < n; i++)
        if (!spared[i] && !all[i].ended)
            all[kept++] = all[i];
    return t->how.mark ? add_orphans(t, list, kept) : kept;
}

static bool is_stopped(const struct proc *p)
{
    return p->state == 'T' || p->state == 't';
}

/* What is stopped takes a TERM only when it goes on. */
static int signal_one(const struct proc *p, int signal)
{
    int result = proc_signal(p, signal);
    if (result == 0 && signal == SIGTERM)
        proc_signal(p, SIGCONT);
    return result;
}

/* Signals all of them, but for those that a STOP has reached. How many there are, also such as may not be
 * signalled; *running: how many of those were not stopped. */
static size_t signal_victims(struct tree_end *t, int signal, size_t *running)
{
    struct proc *list;
    /* The group at one stroke: none of it can fork itself out of the way. */
    bool group = signal != 0 && proc_group_is_ours(t->how.group) && kill(-t->how.group, signal) == 0;
    if (group && signal == SIGTERM)
        kill(-t->how.group, SIGCONT);
    if (!proc_is_ours()) {
        *running = 0;
        return signal_children(t, signal);
    }
    size_t n = list_victims(t, &list), count = 0;
    *running = 0;
    for (size_t i = 0; i < n; i++) {
        bool stopped = is_stopped(&list[i]);
        bool wanted =
            signal != 0 && !(group && list[i].group == t->how.group) && !(stopped && signal == SIGSTOP);
        if (wanted && signal_one(&list[i], signal) < 0 && errno == ESRCH)
            continue;
        count++;
        *running += !stopped;
    }
    free(list);
    return count;
}

/* To all, however deep they are: level by level, a tree that is deep enough outlives any limit. What could
 * fork while the others are killed is stopped first; so it also keeps its place in a limit on processes. */
static size_t kill_victims(struct tree_end *t, bool *goes_on)
{
    size_t running = 1, least = SIZE_MAX;
    for (int i = 0; i < STOP_ROUNDS && running > 0; i++) {
        signal_victims(t, SIGSTOP, &running);
        least = running < least ? running : least;
    }
    size_t left = signal_victims(t, SIGKILL, &running);
    *goes_on = proc_goes_down(&t->decline, left + least, t->how.limit_ms - t->how.grace_ms);
    return left;
}

static size_t count_victims(struct tree_end *t)
{
    size_t running;
    return signal_victims(t, 0, &running);
}

/* ---- from beginning to end ---- */

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
    bool none = !t->how.mark && has_no_children(), goes_on = now < t->kill_at && now < t->give_up_at;
    size_t left = none ? 0 : 1;
    if (!none && now >= t->kill_at)
        left = kill_victims(t, &goes_on);
    else if (!none && (t->how.spare || t->how.mark))
        left = count_victims(t);
    if (none || (t->how.spare && left == 0))
        finish(t, 0);
    else if (!goes_on || now >= t->end_at)
        finish(t, count_victims(t));
    else
        loop_timer_set(t->timer, TICK_MS);
}

struct tree_end *tree_end(struct loop *loop, const struct tree_end_options *how,
                          void (*done)(void *arg, size_t left), void *arg)
{
    size_t running;
    struct tree_end *t = mem_zalloc(sizeof *t);
    t->how = *how;
    t->kill_at = now_ms() + how->grace_ms;
    t->give_up_at = now_ms() + how->limit_ms;
    t->end_at = t->kill_at + LONGEST_MS;
    t->first_pid = 1;
    t->done = done;
    t->arg = arg;
    if (how->grace_ms > 0)
        signal_victims(t, SIGTERM, &running);
    t->timer = loop_timer(loop, 1, tick, t);
    return t;
}

/* ---- somebody else's tree ---- */

size_t proc_kill_tree(pid_t root)
{
    struct proc *list, itself;
    size_t alive = 0;
    bool there = proc_read(root, &itself) == 0;
    for (int i = 0; i < STOP_ROUNDS; i++) {
        size_t n = proc_descendants(root, &list), running = 0;
        for (size_t k = 0; k < n; k++)
            if (!list[k].ended && !is_stopped(&list[k]) && proc_signal(&list[k], SIGSTOP) == 0)
                running++;
        free(list);
        if (running == 0)
            break;
    }
    size_t n = proc_descendants(root, &list);
    for (size_t k = 0; k < n; k++)
        if (!list[k].ended && proc_signal(&list[k], SIGKILL) < 0 && errno != ESRCH)
            alive++;
    free(list);
    if (there ? proc_signal(&itself, SIGKILL) < 0 : kill(root, SIGKILL) < 0)
        alive += errno != ESRCH;
    return alive;
}
