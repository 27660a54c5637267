/* What the kernel says of processes, and the end of whole trees of them. A /proc of another pid namespace is
 * none. */
#ifndef CORE_PROC_H
#define CORE_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct loop;
struct user;

struct proc {
    pid_t pid, ppid, group, session;
    dev_t tty;                /* the terminal that controls it; 0: none */
    pid_t foreground;         /* the group in the foreground there */
    char state;               /* R, S, D, T, Z, …: of its first thread */
    bool ended;               /* all of its threads have; the first one alone says nothing of the others */
    bool ending;              /* its only thread is on the way out: its children may still be its */
    unsigned long long start; /* with the pid, the identity of a process */
};

/* The clock that a start is of, in ms: in gVisor it is none of the process's own. 0 without /proc. */
long long proc_uptime_ms(void);

/* -1 when there is no such process, or no /proc. */
int proc_read(pid_t pid, struct proc *p);
/* Name of a process's program as the kernel has it (at most 15 bytes), "" when it can't be told. */
void proc_name(pid_t pid, char name[16]);
/* What the process does with the signal: 0 where that is what everybody does, -1 when that can't be told. */
enum { PROC_CATCHES = 1, PROC_IGNORES };
int proc_handles(pid_t pid, int signal);
/* A signal that it does not block has come, and it has yet to take it: what it seems to wait for, it won't.
 */
bool proc_is_signalled(pid_t pid);
/* Text that ends in the target of /proc/PID/NAME ("cwd", "exe"); false when it can't be read. */
bool proc_link(pid_t pid, const char *name, char *path, size_t size);

/* All descendants of `root`, parents before children; free() the list. 0 and NULL without /proc. */
size_t proc_descendants(pid_t root, struct proc **list);

/* All processes that there are; free() the list. And what of a list hangs below its first `found`: brought to
 * the front, behind those, parents first. How many that makes. */
size_t proc_all(struct proc **list);
size_t proc_below(struct proc *list, size_t n, size_t found);
void proc_swap(struct proc *a, struct proc *b);

/* True when /proc is that of our pid namespace: another one's, left mounted, speaks of other processes under
 * the same numbers. What is declared here looks itself. */
bool proc_is_ours(void);

/* Appends who lives below this process: " (NAME PID, …)", a few of them; nothing where that can't be told. */
struct buf;
void proc_put_living(struct buf *out);

/* Resident memory in KiB; -1 when it can't be told. */
long long proc_memory_kb(pid_t pid);

/* False when that process waits for no children that it doesn't know of, as far as can be told from outside:
 * SIGCHLD is nothing to it. What ends below it as an orphan is a zombie for ever where it is process 1. */
bool proc_reaps(pid_t pid);

/* Signals exactly that process: a pid that has been given to another one meanwhile is left alone. */
int proc_signal(const struct proc *p, int signal);

/* Reaps all children of a process without a loop that end within `ms`: whoever ends before them leaves
 * zombies where process 1 is none that reaps. Returns as soon as there are none. */
void proc_reap(int ms);

/* Calls gone, once, from the loop, when that process, which need not be ours, has ended; soon, where it has
 * already. There is no way back. */
void proc_watch(struct loop *loop, pid_t pid, void (*gone)(void *arg), void *arg);

/* True when there is a child of this process, alive or not reaped yet, in the process group: then the number
 * is that group's and no other's. Needs no /proc. */
bool proc_group_is_ours(pid_t group);

/* Whether a number has come down lately: for who waits for something that takes as long as there is to do;
 * zero to begin with. False once it has been no lower than before for so long. */
struct proc_decline {
    size_t least;
    long long least_at;
};
bool proc_goes_down(struct proc_decline *d, size_t n, int patience_ms);

/* Ends all descendants of this process, which must be their subreaper and leave reaping to the loop: TERM and
 * CONT to `group` and to all that is not in it, after grace_ms STOP and KILL to all, again and again, until
 * none is left, or for limit_ms - grace_ms neither how many there are nor how many run has come down, but
 * half a minute at most. Then done is called, from the loop, with how many are left. Without /proc the group
 * is signalled, and children found by number: grandchildren only once they are orphans. */
struct tree_end_options {
    pid_t group; /* 0: none */
    int grace_ms, limit_ms;
    bool (*spare)(void *arg, pid_t pid); /* which children stay, with all that is theirs; NULL: none */
    unsigned long long mark;             /* orphans with this mark (mark.h) end as well; 0: none */
};
struct tree_end;
struct tree_end *tree_end(struct loop *loop, const struct tree_end_options *how,
                          void (*done)(void *arg, size_t left), void *arg);

/* Kills a process that is no child of ours with all that hangs below it, which could not be found any more
 * afterwards. How many could not be signalled. */
size_t proc_kill_tree(pid_t root);

#endif
