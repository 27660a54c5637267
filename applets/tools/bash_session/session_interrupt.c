/* An interrupt that isn't lost.
 *
 * A shell leaves its loop or list when it sees that a program died of the interrupt, or gets it itself while
 * it waits for none. It goes on where the signal met a program that was ending of its own accord, or the copy
 * of the shell that was about to become one: there the shell's handler takes it. So what is interrupted is
 * looked at before. Where that can have happened, what the shell begins next is interrupted too. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "io.h"
#include "mem.h"
#include "proc.h"
#include "session_kind.h"
#include "session_shell.h"
#include "session_state.h"

#define LOOK_MS 10
#define WATCH_MS 1000   /* after the first signal */
#define CANCEL_MS 5000  /* for what was abandoned to be over */
#define ITSELF_LOOKS 30 /* a shell that is busy itself for so long is in a loop, not between two programs */
#define DEATH_LOOKS 200
#define DEATH_US 1000 /* between two looks whether a program is over that has got the signal */
#define YOUNG_MS 200  /* an older program hardly ends in the very moment of the signal */
#define DEAF_LOOKS 3  /* in a row, at a shell that waits and has not told: it did not notice */

#define ANY_AGE INT64_MAX
#define FORK_MS 20 /* a clock's tick, and what may pass between a fork and a look */

#define MEMBERS_MAX 32

/* One in the foreground: with the name, what tells a program from the copy of a shell that it was. */
struct member {
    pid_t pid;
    char name[16];
};

struct target {
    pid_t group;
    unsigned long long start; /* of its leader */
    char name[16];
    struct member members[MEMBERS_MAX]; /* with its leader; without more than fit */
    int n;
    bool is_shell;   /* or a copy of it */
    bool alone;      /* in its group */
    bool hooked;     /* with nobody but what is young, as what it substitutes in its prompt is */
    bool losable;    /* the signal may have no effect there */
    int handles;     /* it does so itself, as handles() has it */
    bool with_shell; /* which was interrupted too */
};

struct interrupt {
    struct shell *shell;
    struct loop_source *timer;
    struct target target; /* the last one that was signalled */
    bool sent, cancel;
    int itself; /* looks in a row at a busy shell */
    int deaf;   /* and at one that waits for the rest of what it was given */
    unsigned long prompts;
    long long began, until; /* now_ms() */
    struct buf behind;      /* to be typed when it is over */
};

static long long age_ms(unsigned long long start)
{
    return proc_uptime_ms() - (long long)start * 1000 / sysconf(_SC_CLK_TCK);
}

/* A program that dies of the signal now, or takes it. A shell that has just been started takes it as well,
 * but what it is about to begin may not. */
static bool is_sure(const struct proc *p, const char *name)
{
    return !p->ended &&
           (age_ms(p->start) >= YOUNG_MS || (!kind_of(name)->is_shell && proc_handles(p->pid, SIGINT) > 0));
}

static void read_arguments(pid_t pid, struct buf *out)
{
    char path[40];
    snprintf(path, sizeof path, "/proc/%ld/cmdline", (long)pid);
    io_read_file(AT_FDCWD, path, out);
}

/* It is the shell itself, forked for a part of what it does: not a script of its own. */
static bool is_copy(const struct shell *sh, pid_t pid)
{
    struct buf its BUF_AUTO = BUF_INIT, own BUF_AUTO = BUF_INIT;
    read_arguments(pid, &its);
    read_arguments(sh->pid, &own);
    return its.len > 0 && its.len == own.len && memcmp(its.data, own.data, own.len) == 0;
}

#define COPY 2

static bool has_children(pid_t pid)
{
    struct proc *list;
    size_t n = proc_descendants(pid, &list);
    free(list);
    return n > 0;
}

/* 1: it does, 0: it doesn't, -1: that can't be told; or COPY. A copy that is about to become something else
 * doesn't catch it for itself, and the shell may not have begun all of a pipe. One that ignores it was told
 * so; one that catches it and has begun something has a trap of its own. */
static int handles(const struct shell *sh, const struct proc *p)
{
    int its = proc_handles(p->pid, SIGINT);
    bool own = its != PROC_CATCHES ||
               (!sh->kind->copies_catch && (age_ms(p->start) >= YOUNG_MS || has_children(p->pid)));
    if (!own && is_copy(sh, p->pid))
        return COPY;
    return its > 0 ? 1 : its;
}

static int of_both(int a, int b)
{
    return a == 1 || b == 1 ? 1 : a > b ? a : b;
}

/* What else is in the group. `orphaned`: its leader has ended, the first of a pipe. */
static void look_at_members(const struct shell *sh, struct target *t, const char *shell, bool orphaned)
{
    struct proc *list;
    size_t n = proc_descendants(getpid(), &list);
    for (size_t i = 0; i < n; i++) {
        struct member *m = &t->members[t->n < MEMBERS_MAX ? t->n : MEMBERS_MAX - 1];
        if (list[i].group != t->group || list[i].ended)
            continue;
        m->pid = list[i].pid;
        proc_name(m->pid, m->name);
        t->n += t->n < MEMBERS_MAX;
        if (list[i].pid == t->group)
            continue;
        bool copy = strcmp(shell, m->name) == 0;
        if (orphaned || sh->kind->copies_catch)
            t->handles =
                orphaned && t->alone ? handles(sh, &list[i]) : of_both(t->handles, handles(sh, &list[i]));
        t->alone = false;
        t->hooked = t->hooked && age_ms(list[i].start) < YOUNG_MS;
        if (!copy && is_sure(&list[i], m->name))
            t->losable = false;
    }
    free(list);
}

/* `quickly`: the less time passes until the key is written, the surer it is meant for what was seen. */
static void aim(const struct shell *sh, struct target *t, bool quickly)
{
    struct proc leader = {.ended = true};
    char shell[16];
    *t = (struct target){
        .group = pty_foreground(&sh->terminal->pty), .alone = true, .hooked = !sh->kind->is_bash};
    if (t->group == 0)
        t->group = sh->pid;
    proc_name(sh->pid, shell);
    proc_name(t->group, t->name);
    proc_read(t->group, &leader);
    t->start = leader.start;
    t->is_shell = t->group == sh->pid || strcmp(shell, t->name) == 0;
    t->losable = t->is_shell || !is_sure(&leader, t->name);
    t->handles = t->group == sh->pid || leader.ended ? 1 : handles(sh, &leader);
    if (!quickly || leader.ended || sh->kind->copies_catch ||
        (t->losable && kind_of(t->name)->is_shell && t->group != sh->pid))
        look_at_members(sh, t, shell, leader.ended && t->group != sh->pid);
}

/* It wasn't there when the last one was sent, or was the copy of a shell. */
static bool is_new(const struct member *m, const struct target *last)
{
    for (int i = 0; i < last->n; i++)
        if (last->members[i].pid == m->pid)
            return strcmp(last->members[i].name, m->name) != 0;
    return true;
}

/* Another one, or a shell with programs in its own group (a subshell, `$(…)`, a start-up file, a script),
 * which goes on with them. Where the shell was interrupted as well it begins nothing more, but what should
 * have died may live: it was met as it began to handle signals. */
static bool is_next(const struct target *t, const struct target *last, const struct shell *sh)
{
    bool same = t->group == last->group && t->start == last->start;
    if (same && last->n > 0)
        for (int i = 0; i < t->n && t->group != sh->pid; i++)
            if (is_new(&t->members[i], last))
                return true;
    if (last->with_shell)
        return same && t->group != sh->pid;
    return !same || strcmp(t->name, last->name) != 0 || (t->is_shell && (t->group != sh->pid || !t->alone));
}

void shell_interrupt_end(struct shell *sh)
{
    if (!sh->interrupt)
        return;
    struct buf behind BUF_AUTO = sh->interrupt->behind;
    loop_remove(sh->interrupt->timer);
    free(sh->interrupt);
    sh->interrupt = NULL;
    sh->known.held = false;
    if (sh->pid && behind.len > 0) {
        shell_happened(sh, SHELL_IS_GIVEN);
        terminal_type(sh->terminal, behind.data, behind.len);
    }
    loop_timer_set(sh->terminal->pace->timer, 1); /* a run may wait for this */
}

/* Others than bash notice what comes while they wait; between two bytes of a line, or of code, they go on to
 * wait for the next one, which was dropped with the rest. One that has lost its hook has nothing to tell. */
static bool is_deaf(const struct shell *sh, enum waiting w)
{
    return sh->kind->is_shell && !sh->kind->is_bash && sh->kind->start.setup && !shell_is_back(sh) &&
           (w == WAITING_SHELL || w == WAITING_CODE) && !shell_lost_hook(sh);
}

static void give_hook(struct shell *sh)
{
    struct buf code BUF_AUTO = BUF_INIT, line BUF_AUTO = BUF_INIT;
    kind_put_hook(&code, sh->kind, &sh->channel);
    channel_put_code(&sh->channel, &code);
    kind_fill(&line, sh->kind->is_csh ? sh->kind->take.line : SHELL_SOURCE "@", sh->channel.path);
    buf_addc(&line, '\n');
    terminal_type(sh->terminal, line.data, line.len);
}

void shell_wake(struct shell *sh)
{
    if (sh->kind->is_csh || shell_lost_hook(sh))
        give_hook(sh);
    else if (sh->kind->ends_line)
        terminal_type(sh->terminal, "\n", 1);
    else
        kill(sh->pid, SIGINT);
}

/* What a csh begins from then on is what tells: not to be interrupted once more. */
static void wake(struct interrupt *in, enum waiting w)
{
    struct buf nothing BUF_AUTO = BUF_INIT;
    if (w == WAITING_CODE)
        channel_put_code(&in->shell->channel, &nothing);
    else
        shell_wake(in->shell);
    if (in->shell->kind->is_csh)
        in->cancel = in->target.losable = false;
}

static bool is_over(const struct interrupt *in, enum waiting w)
{
    const struct shell *sh = in->shell;
    long long until = in->until + (is_deaf(sh, w) ? CANCEL_MS : 0);
    bool tells = sh->told.message.kind && !sh->known.held; /* it does so once more where it is hit */
    if (!sh->pid || sh->known.prompts != in->prompts || tells || now_ms() >= until)
        return true;
    if (in->sent && !sh->kind->is_shell) /* it goes on with nothing */
        return true;
    if (is_deaf(sh, w))
        return false;
    return in->sent && (w == WAITING_SHELL || (!in->cancel && !in->target.losable));
}

/* Not the shell between two programs or in its hook, nor a copy that may yet become one. */
static bool can_be_hit(struct interrupt *in, const struct target *t, enum waiting w)
{
    const struct shell *sh = in->shell;
    bool busy = t->group == sh->pid && (t->alone || t->hooked) && (w == WAITING_NOT || w == WAITING_UNKNOWN);
    in->itself = busy ? in->itself + 1 : 0;
    if (t->is_shell && t->group != sh->pid && age_ms(t->start) < YOUNG_MS)
        return false;
    return input_is_taken(&sh->terminal->input, &sh->terminal->pty) && (!busy || in->itself >= ITSELF_LOOKS);
}

/* Where nothing says whether it handles the signal that shows, while the shell stands still: it can't take
 * notice of the end before it is interrupted itself. */
static bool dies_of_it(const struct shell *sh, pid_t group)
{
    struct proc leader;
    bool over = false;
    kill(sh->pid, SIGSTOP);
    kill(-group, SIGINT);
    for (int i = 0; i < DEATH_LOOKS && !over; i++) {
        usleep(DEATH_US);
        over = proc_read(group, &leader) < 0 || leader.ended;
    }
    if (over)
        kill(sh->pid, SIGINT);
    kill(sh->pid, SIGCONT);
    return over;
}

/* bash goes on with the next command where the program was all that it had to do (of an `eval`, an `if`, a
 * line), and ends everything when the program is over and it was interrupted itself. Only with one that dies
 * of it: from one that handles it the shell has to hear how it ended. */
static void strike_shell(struct shell *sh, struct target *t)
{
    sh->known.struck = (sh->known.interrupted && sh->known.struck) || t->group == sh->pid;
    sh->known.interrupted = true;
    if (!sh->kind->is_bash) { /* code that it has not read must not answer for us at its prompt */
        input_release(&sh->channel.outgoing);
        channel_flush(&sh->channel);
    }
    bool alike = t->handles == 0 && !sh->kind->copies_catch; /* those take it once more, at their prompt */
    if (!sh->kind->is_shell || (t->handles != COPY && !alike))
        return;
    kill(sh->pid, SIGINT);
    t->with_shell = sh->known.struck = true;
}

static void strike(struct shell *sh, struct target *t)
{
    strike_shell(sh, t);
    if (t->handles < 0 && sh->kind->is_bash)
        t->with_shell = dies_of_it(sh, t->group);
    else
        kill(-t->group, SIGINT);
}

/* What a shell that was interrupted just then has begun and not handed the terminal to: it may wait for that,
 * or not know of it. */
static void strike_unhanded(const struct shell *sh, long long age)
{
    struct proc *list, *last = NULL;
    pid_t front = pty_foreground(&sh->terminal->pty);
    size_t n = proc_descendants(getpid(), &list);
    for (size_t i = 0; i < n; i++)
        if (list[i].ppid == sh->pid && list[i].group == list[i].pid && !list[i].ended &&
            list[i].group != front && list[i].state != 'T' && age_ms(list[i].start) <= age &&
            (!last || list[i].start >= last->start))
            last = &list[i];
    if (last)
        kill(-last->group, SIGINT);
    free(list);
}

static void look(void *arg)
{
    struct interrupt *in = arg;
    struct shell *sh = in->shell;
    struct target t;
    enum waiting w = shell_look(sh, LOOK_CLOSELY);
    terminal_drain(sh->terminal);
    if (w == WAITING_NOT && shell_reads_code(sh))
        w = WAITING_CODE;
    if (is_over(in, w)) {
        if (in->sent && in->target.with_shell) /* it has left what was begun just then */
            kill(-in->target.group, SIGINT);
        if (in->sent && sh->pid && in->target.group == sh->pid)
            strike_unhanded(sh, now_ms() - in->began + FORK_MS);
        shell_interrupt_end(sh);
        return;
    }
    in->deaf = in->sent && is_deaf(sh, w) ? in->deaf + 1 : 0;
    loop_timer_set(in->timer, LOOK_MS);
    if (sh->told.message.kind)
        return; /* it may be believed */
    if (in->deaf > 0) {
        if (in->deaf % DEAF_LOOKS == 0)
            wake(in, w);
        return;
    }
    aim(sh, &t, false);
    if (can_be_hit(in, &t, w) &&
        (!in->sent || ((in->cancel || in->target.losable) && is_next(&t, &in->target, sh)))) {
        strike(sh, &t);
        sh->told.doubted = true; /* it may hit the hook */
        in->until = in->sent || in->cancel ? in->until : now_ms() + WATCH_MS;
        in->sent = true;
        in->target = t;
        in->itself = 0;
    } else if (in->sent && t.alone && in->itself == ITSELF_LOOKS) {
        strike_unhanded(sh, ANY_AGE);
    }
}

static struct interrupt *begin(struct shell *sh, long long ms)
{
    shell_interrupt_end(sh);
    struct interrupt *in = mem_zalloc(sizeof *in);
    *in = (struct interrupt){.shell = sh,
                             .prompts = sh->known.prompts,
                             .began = now_ms(),
                             .until = now_ms() + ms,
                             .behind = BUF_INIT};
    in->timer = loop_timer(sh->terminal->loop, LOOK_MS, look, in);
    sh->interrupt = in;
    sh->known.held = sh->kind->ends_line;
    sh->told.doubted = true;
    return in;
}

void shell_interrupt_follow(struct shell *sh, const char *behind, size_t n)
{
    struct interrupt *in = begin(sh, WATCH_MS);
    buf_add(&in->behind, behind, n);
    sh->known.held = sh->known.held || n > 0;
    in->sent = true;
    aim(sh, &in->target, true);
    strike_shell(sh, &in->target);
}

bool shell_interrupt_now(struct shell *sh)
{
    if (sh->kind->ends_line && pty_foreground(&sh->terminal->pty) == sh->pid)
        shell_happened(sh, SHELL_IS_GIVEN); /* it is not at its prompt before it shows another one */
    shell_interrupt_follow(sh, NULL, 0);
    input_drop(&sh->terminal->input, &sh->terminal->pty); /* as with the key: half of a line would stay */
    struct target *t = &sh->interrupt->target;
    if (t->handles < 0)
        strike(sh, t);
    return t->handles < 0;
}

void shell_interrupt_run(struct shell *sh)
{
    begin(sh, CANCEL_MS)->cancel = true;
}
