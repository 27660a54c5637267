#include "support.h"

#include <pthread.h>

#include "buf.h"
#include "io.h"
#include "loop.h"
#include "mark.h"
#include "mem.h"
#include "proc.h"

/* ---- processes to look at and to end ---- */

enum { CALM = 0, DEAF = 1, OWN_SESSION = 2, STOPPED = 4 }; /* deaf: to HUP and TERM */

static int told[2]; /* where what is started says that it is there */

static void open_told(void)
{
    CHECK(pipe2(told, O_CLOEXEC) == 0);
}

static pid_t hear(void)
{
    pid_t pid = -1;
    struct pollfd p = {.fd = told[0], .events = POLLIN};
    CHECK(poll(&p, 1, PATIENCE_MS) == 1 && read(told[0], &pid, sizeof pid) == sizeof pid);
    return pid;
}

static _Noreturn void live(int how)
{
    pid_t pid = getpid();
    alarm(2 * PATIENCE_MS / 1000); /* should the test end before it does */
    signal(SIGHUP, how & DEAF ? SIG_IGN : SIG_DFL);
    signal(SIGTERM, how & DEAF ? SIG_IGN : SIG_DFL);
    if (how & OWN_SESSION)
        setsid();
    CHECK(write(told[1], &pid, sizeof pid) == sizeof pid);
    if (how & STOPPED)
        raise(SIGSTOP);
    for (;;)
        pause();
}

static pid_t start(int how)
{
    pid_t pid = fork();
    if (pid == 0)
        live(how);
    CHECK(pid > 0 && hear() == pid);
    return pid;
}

static void fork_chain(int length, int how)
{
    if (fork() == 0) {
        while (--length > 0 && fork() == 0)
            ;
        live(how);
    }
}

/* A chain of processes, each the child of the one before. */
static void start_chain(int length, int how)
{
    fork_chain(length, how);
    while (length-- > 0)
        hear();
}

/* Forks twice, as a daemon does: the child of nobody, in a session of its own. */
static pid_t start_daemon(int how)
{
    pid_t middle = fork();
    if (middle == 0) {
        setsid();
        if (fork() == 0)
            live(how);
        _exit(0);
    }
    CHECK(waitpid(middle, NULL, 0) == middle);
    return hear();
}

static void end_process(pid_t pid)
{
    kill(pid, SIGKILL);
    CHECK(waitpid(pid, NULL, 0) == pid);
}

static char state_of(pid_t pid)
{
    struct proc p = {0};
    return proc_read(pid, &p) == 0 ? p.state : '-';
}

static void wait_for_state(pid_t pid, char state)
{
    for (long long until = now_ms() + PATIENCE_MS; state_of(pid) != state; usleep(1000))
        CHECK(now_ms() < until);
}

/* ---- what the kernel says ---- */

static void check_read(void *arg)
{
    (void)arg;
    struct proc p, again;
    open_told();
    CHECK(proc_read(getpid(), &p) == 0);
    CHECK(p.pid == getpid() && p.ppid == getppid() && p.group == getpgrp() && p.session == getsid(0));
    CHECK(p.state == 'R' && p.start > 0);
    usleep(20000);
    CHECK(proc_read(getpid(), &again) == 0 && again.start == p.start);
    pid_t pid = start(OWN_SESSION);
    CHECK(proc_read(pid, &p) == 0 && p.ppid == getpid() && p.group == pid && p.session == pid);
    CHECK(p.start >= again.start);
    wait_for_state(pid, 'S');
    kill(pid, SIGSTOP);
    wait_for_state(pid, 'T');
    kill(pid, SIGKILL);
    wait_for_state(pid, 'Z');
    CHECK(waitpid(pid, NULL, 0) == pid);
    CHECK(proc_read(pid, &p) == -1 && proc_read(0, &p) == -1 && proc_read(-1, &p) == -1);
}

static void a_process_is_described(void **state)
{
    (void)state;
    in_child(check_read, NULL);
}

/* Anybody may call himself anything. */
static void check_names(void *arg)
{
    (void)arg;
    static const char *const names[] = {
        "plain", ") R 1 1 1 (",     "a b (c) d",        "))))",           "(((",
        "",      "exactly15bytes!", "\xC3\xA9\xFF\x01", ") Z 0 0 0 0 0 0"};
    struct proc p;
    char name[16];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        CHECK(prctl(PR_SET_NAME, names[i]) == 0);
        CHECK(proc_read(getpid(), &p) == 0 && p.ppid == getppid() && p.state == 'R');
        proc_name(getpid(), name);
        CHECK(strcmp(name, names[i]) == 0);
    }
    prctl(PR_SET_NAME, "two\nlines");
    CHECK(proc_read(getpid(), &p) == 0 && p.ppid == getppid());
    proc_name(getpid(), name);
    CHECK(strncmp(name, "two", 3) == 0); /* newer kernels escape the newline */
    proc_name(-1, name);
    CHECK(strcmp(name, "") == 0);
    proc_name(0, name);
    CHECK(strcmp(name, "") == 0);
    proc_name(0x7fffffff, name);
    CHECK(strcmp(name, "") == 0);
}

static void names_can_not_confuse_it(void **state)
{
    (void)state;
    in_child(check_names, NULL);
}

static void links_are_read(void **state)
{
    (void)state;
    char path[4096], want[4096], tight[4] = "";
    assert_non_null(getcwd(want, sizeof want));
    memset(path, 'x', sizeof path);
    assert_true(proc_link(getpid(), "cwd", path, sizeof path));
    assert_string_equal(path, want);
    assert_true(proc_link(getpid(), "exe", path, sizeof path));
    assert_int_equal(access(path, X_OK), 0);
    assert_true(proc_link(getpid(), "exe", tight, sizeof tight));
    assert_int_equal(strlen(tight), 3);
    assert_memory_equal(tight, path, 3);
    assert_false(proc_link(getpid(), "no-such", path, sizeof path));
    assert_false(proc_link(0x7fffffff, "cwd", path, sizeof path));
}

static void check_descendants(void *arg)
{
    const bool *listed = arg;
    struct proc *list;
    open_told();
    if (!*listed) { /* as on a kernel that doesn't list children */
        refuse_call(SYS_faccessat, ENOENT);
        refuse_call(SYS_faccessat2, ENOENT);
    }
    CHECK(proc_descendants(getpid(), &list) == 0);
    free(list);
    for (int i = 0; i < 60; i++)
        start(CALM);
    start_chain(20, CALM);
    pid_t zombie = fork();
    if (zombie == 0)
        _exit(0);
    wait_for_state(zombie, 'Z');
    size_t n = proc_descendants(getpid(), &list), zombies = 0;
    CHECK(n == 81);
    for (size_t i = 0; i < n; i++) {
        bool known = list[i].ppid == getpid(); /* parents come first */
        for (size_t k = 0; k < i; k++)
            known = known || list[k].pid == list[i].ppid;
        CHECK(known && list[i].pid != getpid());
        zombies += list[i].state == 'Z';
    }
    CHECK(zombies == 1);
    for (size_t i = 0; i < n; i++)
        kill(list[i].pid, SIGKILL);
    free(list);
}

static void descendants_are_found_parents_first(void **state)
{
    static bool listed[] = {true, false};
    (void)state;
    in_child(check_descendants, &listed[0]);
    in_child(check_descendants, &listed[1]);
}

static void check_hidden(void *arg)
{
    (void)arg;
    struct proc p, *list = &p;
    char text[64];
    open_told();
    pid_t pid = start(CALM);
    hide_proc();
    CHECK(proc_read(getpid(), &p) == -1 && !proc_link(getpid(), "exe", text, sizeof text));
    proc_name(getpid(), text);
    CHECK(*text == '\0');
    CHECK(proc_descendants(getpid(), &list) == 0 && !list);
    end_process(pid);
}

static void without_proc_nothing_is_known(void **state)
{
    (void)state;
    in_child(check_hidden, NULL);
}

/* A /proc that was mounted outside names other processes by our numbers. */
static void check_foreign(void *arg)
{
    (void)arg;
    if (unshare(CLONE_NEWPID) < 0 && unshare(CLONE_NEWUSER | CLONE_NEWPID) < 0)
        cannot("no pid namespace");
    pid_t pid = fork();
    if (pid == 0) {
        struct proc p, *list = &p;
        char text[4096];
        CHECK(getpid() == 1 && access("/proc/1/stat", R_OK) == 0);
        CHECK(proc_read(getpid(), &p) == -1 && !proc_link(getpid(), "cwd", text, sizeof text));
        proc_name(getpid(), text);
        CHECK(*text == '\0');
        CHECK(proc_descendants(getpid(), &list) == 0 && !list); /* or it would be all of the machine */
        _exit(0);
    }
    int status;
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

static void a_foreign_proc_is_not_believed(void **state)
{
    (void)state;
    in_child(check_foreign, NULL);
}

static void reading_leaves_nothing_behind(void **state)
{
    (void)state;
    unsigned before = open_descriptors();
    for (int i = 0; i < 30; i++) {
        struct proc p, *list;
        char name[16];
        proc_descendants(1, &list);
        free(list);
        proc_read(getpid(), &p);
        proc_name(getpid(), name);
        proc_signal(&p, 0);
    }
    assert_int_equal(open_descriptors(), before);
}

/* ---- signalling one ---- */

static void check_signal(void *arg)
{
    const long *refused = arg;
    struct proc p, other;
    int status;
    open_told();
    if (refused[0])
        refuse_call(refused[0], (int)refused[1]);
    pid_t pid = start(CALM);
    CHECK(proc_read(pid, &p) == 0);
    other = p;
    other.start++; /* the one that had this number before */
    CHECK(proc_signal(&other, SIGKILL) == -1 && errno == ESRCH);
    CHECK(proc_signal(&p, 0) == 0 && state_of(pid) != 'Z');
    CHECK(proc_signal(&p, SIGUSR1) == 0);
    CHECK(waitpid(pid, &status, 0) == pid && WTERMSIG(status) == SIGUSR1);
    CHECK(proc_signal(&p, 0) == -1 && errno == ESRCH);
}

static void only_that_very_process_is_signalled(void **state)
{
    (void)state;
    static long refused[][2] = {{0, 0},
                                {SYS_pidfd_open, ENOSYS},
                                {SYS_pidfd_open, EPERM},
                                {SYS_pidfd_send_signal, ENOSYS},
                                {SYS_pidfd_send_signal, EPERM}};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        in_child(check_signal, refused[i]);
}

/* ---- the end of a tree ---- */

static struct loop *loop;
static size_t left_over;
static int done_calls;

static void done(void *arg, size_t left)
{
    CHECK(arg == &left_over);
    left_over = left;
    done_calls++;
    loop_stop(loop, 0);
}

static void end_tree(pid_t group, int grace_ms, int limit_ms, bool (*spare)(void *, pid_t))
{
    done_calls = 0;
    struct tree_end_options how = {
        .group = group, .grace_ms = grace_ms, .limit_ms = limit_ms, .spare = spare};
    tree_end(loop, &how, done, &left_over);
    CHECK(done_calls == 0);
    CHECK(loop_run(loop) == 0 && done_calls == 1);
}

static void be_keeper(void)
{
    CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0);
    open_told();
    loop = loop_new(NULL);
}

static void check_all_gone(void)
{
    CHECK(left_over == 0);
    CHECK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
}

#define GRACE 50 /* for those that use it up */

static void check_polite_end(void *arg)
{
    (void)arg;
    be_keeper();
    end_tree(0, PATIENCE_MS, PATIENCE_MS, NULL); /* nobody is there */
    check_all_gone();
    start(CALM);
    start(CALM | OWN_SESSION);
    start_chain(5, CALM);
    start_daemon(CALM);
    start(STOPPED);
    end_tree(0, PATIENCE_MS, PATIENCE_MS, NULL); /* long before the grace is over, or this hangs */
    check_all_gone();
}

static void what_obeys_ends_at_once(void **state)
{
    (void)state;
    in_child(check_polite_end, NULL);
}

static void check_forced_end(void *arg)
{
    (void)arg;
    be_keeper();
    start(DEAF);
    start(DEAF | STOPPED);
    start_chain(20, DEAF);
    for (int i = 0; i < 5; i++)
        start_daemon(DEAF);
    start_chain(5, DEAF | OWN_SESSION);
    end_tree(0, GRACE, PATIENCE_MS, NULL);
    check_all_gone();
}

/* Deaf, stopped, in sessions of their own, children of nobody: nothing gets away. */
static void what_does_not_obey_is_killed(void **state)
{
    (void)state;
    in_child(check_forced_end, NULL);
}

static void check_hundreds(void *arg)
{
    (void)arg;
    be_keeper();
    unsigned before = open_descriptors();
    for (int i = 0; i < (SANITIZED ? 50 : 300); i++)
        start(i % 2 ? CALM : DEAF);
    end_tree(0, GRACE, PATIENCE_MS, NULL);
    check_all_gone();
    CHECK(open_descriptors() == before);
}

static void hundreds_of_children_end(void **state)
{
    (void)state;
    in_child(check_hundreds, NULL);
}

static int last_words[2];

static void say_goodbye(int signal)
{
    char c = (char)signal;
    ssize_t ignored = write(last_words[1], &c, 1);
    (void)ignored;
    _exit(0);
}

static pid_t start_with_last_words(bool stopped)
{
    pid_t pid = fork();
    if (pid == 0) {
        signal(SIGTERM, say_goodbye);
        signal(SIGHUP, SIG_IGN);
        pid = getpid();
        alarm(2 * PATIENCE_MS / 1000);
        CHECK(write(told[1], &pid, sizeof pid) == sizeof pid);
        if (stopped)
            raise(SIGSTOP);
        for (;;)
            pause();
    }
    CHECK(hear() == pid);
    if (stopped)
        wait_for_state(pid, 'T');
    return pid;
}

static size_t words_said(void)
{
    struct buf b BUF_AUTO = BUF_INIT;
    close(last_words[1]);
    CHECK(io_read_all(last_words[0], &b) == 0);
    return b.len;
}

static void check_last_words(void *arg)
{
    bool stopped = arg != NULL;
    be_keeper();
    CHECK(pipe(last_words) == 0);
    start_with_last_words(stopped);
    end_tree(0, PATIENCE_MS, PATIENCE_MS, NULL);
    check_all_gone();
    CHECK(words_said() == 1);
}

/* Also what was stopped is woken and has its chance. */
static void there_is_time_to_clean_up(void **state)
{
    (void)state;
    in_child(check_last_words, NULL);
    in_child(check_last_words, &loop);
}

static void check_no_grace(void *arg)
{
    (void)arg;
    be_keeper();
    CHECK(pipe(last_words) == 0);
    for (int i = 0; i < 10; i++)
        start_with_last_words(false);
    end_tree(0, 0, PATIENCE_MS, NULL);
    check_all_gone();
    CHECK(words_said() == 0);
}

static void without_grace_all_are_killed(void **state)
{
    (void)state;
    in_child(check_no_grace, NULL);
}

static void fork_another(int signal)
{
    (void)signal;
    if (fork() == 0) {
        setsid();
        alarm(2 * PATIENCE_MS / 1000);
        for (;;)
            pause(); /* with the same handler */
    }
}

static void check_respawning(void *arg)
{
    (void)arg;
    be_keeper();
    pid_t pid = fork();
    if (pid == 0) {
        struct sigaction action = {.sa_handler = fork_another};
        sigaction(SIGTERM, &action, NULL);
        sigaction(SIGHUP, &action, NULL);
        live(CALM | OWN_SESSION | 8);
    }
    CHECK(hear() == pid);
    end_tree(0, GRACE, PATIENCE_MS, NULL);
    check_all_gone();
}

static void what_forks_instead_of_ending_is_killed(void **state)
{
    (void)state;
    in_child(check_respawning, NULL);
}

static pid_t spared_child;

static bool is_spared_child(void *arg, pid_t pid)
{
    CHECK(arg == &left_over);
    return pid == spared_child;
}

static void check_spared(void *arg)
{
    (void)arg;
    be_keeper();
    /* A keeper with children of its own, as they hang below a server. */
    spared_child = fork();
    if (spared_child == 0) {
        prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
        fork_chain(3, CALM);
        live(CALM);
    }
    for (int i = 0; i < 4; i++)
        hear();
    start_chain(4, CALM);
    start_chain(4, DEAF);
    start_daemon(DEAF);
    end_tree(0, GRACE, PATIENCE_MS, is_spared_child);
    CHECK(left_over == 0);
    struct proc *list;
    size_t n = proc_descendants(getpid(), &list), alive = 0;
    for (size_t i = 0; i < n; i++)
        alive += list[i].state != 'Z';
    CHECK(alive == 4);
    free(list);
    end_tree(0, PATIENCE_MS, PATIENCE_MS, is_spared_child); /* nothing to do */
    CHECK(left_over == 0 && kill(spared_child, 0) == 0);
    end_tree(0, GRACE, PATIENCE_MS, NULL);
    check_all_gone();
}

static void what_is_spared_stays_with_all_its_own(void **state)
{
    (void)state;
    in_child(check_spared, NULL);
}

static void check_group_alone(void *arg)
{
    (void)arg;
    be_keeper();
    pid_t deaf = start(DEAF | OWN_SESSION), calm = start(CALM | OWN_SESSION);
    hide_proc();
    end_tree(calm, PATIENCE_MS, 100, NULL);
    CHECK(left_over >= 1); /* all that can be told */
    CHECK(kill(calm, 0) == -1 && kill(deaf, 0) == 0);
    end_tree(deaf, 0, PATIENCE_MS, NULL);
    check_all_gone();
}

static void without_proc_the_group_is_ended(void **state)
{
    (void)state;
    in_child(check_group_alone, NULL);
}

static void check_not_ours_to_end(void *arg)
{
    bool spare = arg != NULL;
    if (geteuid() != 0)
        cannot("only root can have what another user may not end");
    be_keeper();
    pid_t roots = start(DEAF);
    spared_child = spare ? start(CALM) : 0;
    CHECK(setresuid(STRANGER, STRANGER, 0) == 0); /* may come back, but must not signal root's */
    CHECK(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0);
    start(CALM);
    end_tree(0, GRACE, 150, spare ? is_spared_child : NULL);
    CHECK(left_over >= 1 && kill(roots, 0) < 0 && errno == EPERM);
    CHECK(setresuid(0, 0, 0) == 0);
    end_tree(0, 0, PATIENCE_MS, NULL);
    check_all_gone();
}

/* Such as a program that became root: told, and not waited for for ever. */
static void what_can_not_be_ended_is_counted(void **state)
{
    (void)state;
    in_child(check_not_ours_to_end, NULL);
    in_child(check_not_ours_to_end, &loop);
}

static void check_foreign_tree(void *arg)
{
    (void)arg;
    if (unshare(CLONE_NEWPID) < 0 && unshare(CLONE_NEWUSER | CLONE_NEWPID) < 0)
        cannot("no pid namespace");
    pid_t pid = fork();
    if (pid == 0) {
        be_keeper();
        pid_t other = start(DEAF | OWN_SESSION), child = start(DEAF | OWN_SESSION);
        end_tree(child, GRACE, PATIENCE_MS, NULL);
        CHECK(left_over == 0 && kill(other, 0) == -1 && kill(child, 0) == -1);
        _exit(0);
    }
    int status;
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

static void a_foreign_proc_is_none(void **state)
{
    (void)state;
    in_child(check_foreign_tree, NULL);
}

static void a_decline_lasts_as_long_as_it_goes_on(void **state)
{
    struct proc_decline d = {0};
    (void)state;
    assert_true(proc_goes_down(&d, 5, 1000));
    for (size_t n = 4; n > 0; n--) {
        usleep(20000);
        assert_true(proc_goes_down(&d, n, 10)); /* is lower */
    }
    usleep(20000);
    assert_false(proc_goes_down(&d, 1, 10));
    assert_false(proc_goes_down(&d, 3, 10)); /* what comes up again is no progress */
    assert_true(proc_goes_down(&d, 0, 10));
}

/* ---- what else is asked ---- */

static void check_signals_of(void *arg)
{
    (void)arg;
    struct sigaction ignore = {.sa_handler = SIG_IGN}, handle = {.sa_handler = say_goodbye},
                     plain = {.sa_handler = SIG_DFL};
    sigset_t child;
    CHECK(sigaction(SIGTERM, &plain, NULL) == 0 && sigaction(SIGCHLD, &plain, NULL) == 0);
    CHECK(sigemptyset(&child) == 0 && sigprocmask(SIG_SETMASK, &child, NULL) == 0);
    CHECK(proc_handles(getpid(), SIGTERM) == 0 && !proc_reaps(getpid()));
    CHECK(sigaction(SIGTERM, &ignore, NULL) == 0 && proc_handles(getpid(), SIGTERM) == PROC_IGNORES);
    CHECK(sigaction(SIGTERM, &handle, NULL) == 0 && proc_handles(getpid(), SIGTERM) == PROC_CATCHES);
    CHECK(proc_handles(getpid(), SIGUSR2) == 0);
    CHECK(sigaction(SIGCHLD, &ignore, NULL) == 0 && proc_reaps(getpid()));
    CHECK(sigaction(SIGCHLD, &handle, NULL) == 0 && proc_reaps(getpid()));
    CHECK(sigaction(SIGCHLD, &plain, NULL) == 0 && !proc_reaps(getpid()));
    CHECK(sigaddset(&child, SIGCHLD) == 0 && sigprocmask(SIG_SETMASK, &child, NULL) == 0);
    CHECK(proc_reaps(getpid())); /* it waits for it by other means */
    CHECK(proc_handles(0x7fffffff, SIGTERM) == -1 && proc_reaps(0x7fffffff)); /* not known to be otherwise */
    hide_proc();
    CHECK(proc_handles(getpid(), SIGTERM) == -1 && proc_reaps(getpid()));
}

static void check_memory_of(void *arg)
{
    (void)arg;
    long long memory = proc_memory_kb(getpid());
    CHECK(memory > 0 && memory < 1LL << 40 && proc_memory_kb(0x7fffffff) == -1);
    struct buf status BUF_AUTO = BUF_INIT;
    CHECK(io_read_file(AT_FDCWD, "/proc/self/status", &status) == 0);
    const char *line = strstr(buf_str(&status), "VmRSS:");
    long long same = line ? strtoll(line + 6, NULL, 10) : memory;
    CHECK(memory > same / 2 && memory < same * 2);
    hide_proc();
    CHECK(proc_memory_kb(getpid()) == -1);
}

static void signals_and_memory_are_told(void **state)
{
    (void)state;
    in_child(check_signals_of, NULL);
    in_child(check_memory_of, NULL);
}

static void check_living(void *arg)
{
    (void)arg;
    struct buf text BUF_AUTO = BUF_INIT, want BUF_AUTO = BUF_INIT;
    open_told();
    proc_put_living(&text);
    CHECK(text.len == 0);
    CHECK(prctl(PR_SET_NAME, "odd\t\x7f\xC3 name~") == 0);
    pid_t pids[7];
    for (int i = 0; i < 7; i++) {
        pids[i] = start(CALM);
        if (i == 0) {
            proc_put_living(&text);
            buf_addf(&want, " (odd??? name~ %ld)", (long)pids[0]);
            CHECK(strcmp(buf_str(&text), buf_str(&want)) == 0);
        }
    }
    kill(pids[0], SIGKILL);
    wait_for_state(pids[0], 'Z'); /* doesn't live */
    buf_truncate(&text, 0);
    buf_truncate(&want, 0);
    for (int i = 1; i <= 5; i++)
        buf_addf(&want, "%s %ld", i == 1 ? " (odd??? name~" : ", odd??? name~", (long)pids[i]);
    buf_adds(&want, ", …)");
    proc_put_living(&text);
    CHECK(strcmp(buf_str(&text), buf_str(&want)) == 0);
    for (int i = 1; i < 7; i++)
        kill(pids[i], SIGKILL);
    while (wait(NULL) > 0)
        continue;
}

static void who_lives_is_named(void **state)
{
    (void)state;
    in_child(check_living, NULL);
}

static void check_reap(void *arg)
{
    (void)arg;
    open_told();
    proc_reap(PATIENCE_MS); /* nobody is there: at once */
    pid_t first = start(CALM), second = start(CALM), later = fork();
    if (later == 0) {
        usleep(50000);
        kill(second, SIGKILL);
        _exit(0);
    }
    kill(first, SIGKILL);
    proc_reap(PATIENCE_MS); /* until the last of them has ended */
    CHECK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
    first = start(CALM);
    proc_reap(20); /* and no longer */
    CHECK(kill(first, 0) == 0 && state_of(first) != 'Z');
    end_process(first);
}

static void what_ends_is_reaped_for_a_while(void **state)
{
    (void)state;
    in_child(check_reap, NULL);
}

static void check_kill_tree(void *arg)
{
    (void)arg;
    be_keeper();
    pid_t root = fork();
    if (root == 0) { /* which reaps nothing */
        for (int i = 0; i < 3; i++)
            fork_chain(1, i ? DEAF : DEAF | STOPPED);
        fork_chain(5, DEAF | OWN_SESSION);
        live(DEAF);
    }
    for (int i = 0; i < 9; i++)
        hear();
    pid_t other = start(CALM);
    struct proc *list;
    CHECK(proc_descendants(root, &list) == 8);
    free(list);
    unsigned before = open_descriptors();
    CHECK(proc_kill_tree(root) == 0);
    CHECK(open_descriptors() == before);
    for (int left = 9; left > 0; left--) { /* as their subreaper */
        int status;
        CHECK(waitpid(-1, &status, 0) != other && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    }
    CHECK(kill(other, 0) == 0 && state_of(other) == 'S');
    end_process(other);
    CHECK(proc_kill_tree(other) == 0); /* what is not there needs no end */
}

static void somebody_elses_tree_is_killed_whole(void **state)
{
    (void)state;
    in_child(check_kill_tree, NULL);
}

static void check_kill_refused(void *arg)
{
    (void)arg;
    if (geteuid() != 0)
        cannot("only root can have what another user may not end");
    be_keeper();
    pid_t root = fork();
    if (root == 0) {
        fork_chain(1, CALM);
        live(CALM);
    }
    hear();
    hear();
    CHECK(setresuid(STRANGER, STRANGER, 0) == 0);
    CHECK(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0);
    CHECK(proc_kill_tree(root) == 2 && kill(root, 0) < 0 && errno == EPERM);
    CHECK(setresuid(0, 0, 0) == 0 && proc_kill_tree(root) == 0);
    CHECK(waitpid(root, NULL, 0) == root);
}

static void what_may_not_be_killed_is_counted(void **state)
{
    (void)state;
    in_child(check_kill_refused, NULL);
}

/* ---- orphans of dead keepers, by their mark ---- */

static void check_marked(void *arg)
{
    (void)arg;
    int dir = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    unsigned long long mark = mark_of(dir);
    struct rlimit limit;
    CHECK(getrlimit(RLIMIT_RTTIME, &limit) == 0);
    if (limit.rlim_cur != RLIM_INFINITY)
        cannot("there is such a limit already");
    be_keeper();
    pid_t keeper = fork();
    if (keeper == 0) { /* is killed, and leaves two to this process */
        mark_keeper(mark);
        if (fork() == 0) {
            mark_started();
            fork_chain(1, DEAF);
            live(DEAF);
        }
        live(CALM);
    }
    for (int i = 0; i < 3; i++)
        hear();
    end_process(keeper);
    pid_t ender = fork();
    if (ender == 0) { /* whose children they are not */
        done_calls = 0;
        loop_free(loop);
        loop = loop_new(NULL);
        struct tree_end_options how = {.limit_ms = PATIENCE_MS, .mark = mark};
        tree_end(loop, &how, done, &left_over);
        CHECK(loop_run(loop) == 0 && done_calls == 1 && left_over == 0);
        _exit(0);
    }
    int status;
    CHECK(waitpid(ender, &status, 0) == ender && status == 0);
    for (int i = 0; i < 2; i++)
        CHECK(waitpid(-1, &status, 0) > 0 && WTERMSIG(status) == SIGKILL);
    CHECK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
}

static void what_dead_keepers_leave_ends_as_well(void **state)
{
    (void)state;
    in_child(check_marked, NULL);
}

/* ---- one that is watched ---- */

static void on_gone(void *arg)
{
    CHECK(arg == &left_over);
    done_calls++;
    loop_stop(loop, 0);
}

static void check_watch(void *arg)
{
    int ends[2];
    pid_t pid;
    open_told();
    loop = loop_new(NULL);
    CHECK(pipe(ends) == 0);
    pid_t parent = fork(); /* so that it is no child of ours */
    if (parent == 0) {
        if ((pid = fork()) == 0)
            live(CALM);
        CHECK(write(ends[1], &pid, sizeof pid) == sizeof pid);
        live(CALM);
    }
    hear();
    hear();
    CHECK(read(ends[0], &pid, sizeof pid) == sizeof pid);
    if (arg)
        refuse_call(SYS_pidfd_open, ENOSYS);
    unsigned before = open_descriptors();
    done_calls = 0;
    proc_watch(loop, pid, on_gone, &left_over);
    loop_timer(loop, 50, on_gone, &left_over);
    CHECK(loop_run(loop) == 0 && done_calls == 1 && kill(pid, 0) == 0); /* by the timer */
    kill(pid, SIGKILL);
    end_process(parent); /* whoever reaps it now does */
    CHECK(loop_run(loop) == 0 && done_calls == 2);
    proc_watch(loop, pid, on_gone, &left_over); /* it has ended already */
    CHECK(loop_run(loop) == 0 && done_calls == 3);
    CHECK(open_descriptors() == before);
    loop_free(loop);
}

static void the_end_of_one_is_told(void **state)
{
    (void)state;
    in_child(check_watch, NULL);
    in_child(check_watch, &loop);
}

static void *live_on(void *arg)
{
    (void)arg;
    while (pause() < 0)
        continue;
    return NULL;
}

/* A process whose first thread has ended, and shows as a zombie, is there as long as another one is. */
static void check_threads(void *arg)
{
    (void)arg;
    struct proc p;
    pid_t pid = fork();
    if (pid == 0) {
        pthread_t thread;
        alarm(2 * PATIENCE_MS / 1000);
        CHECK(pthread_create(&thread, NULL, live_on, NULL) == 0);
        syscall(SYS_exit, 0); /* of this thread alone */
    }
    wait_for_state(pid, 'Z');
    CHECK(proc_read(pid, &p) == 0 && !p.ended && kill(pid, SIGKILL) == 0);
    for (long long until = now_ms() + PATIENCE_MS; !p.ended; usleep(1000))
        CHECK(proc_read(pid, &p) == 0 && now_ms() < until);
    CHECK(waitpid(pid, NULL, 0) == pid);
}

static void a_process_ends_with_its_last_thread(void **state)
{
    (void)state;
    in_child(check_threads, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_is_described),
        cmocka_unit_test(a_process_ends_with_its_last_thread),
        cmocka_unit_test(names_can_not_confuse_it),
        cmocka_unit_test(links_are_read),
        cmocka_unit_test(descendants_are_found_parents_first),
        cmocka_unit_test(without_proc_nothing_is_known),
        cmocka_unit_test(a_foreign_proc_is_not_believed),
        cmocka_unit_test(reading_leaves_nothing_behind),
        cmocka_unit_test(only_that_very_process_is_signalled),
        cmocka_unit_test(what_obeys_ends_at_once),
        cmocka_unit_test(what_does_not_obey_is_killed),
        cmocka_unit_test(hundreds_of_children_end),
        cmocka_unit_test(there_is_time_to_clean_up),
        cmocka_unit_test(without_grace_all_are_killed),
        cmocka_unit_test(what_forks_instead_of_ending_is_killed),
        cmocka_unit_test(what_is_spared_stays_with_all_its_own),
        cmocka_unit_test(without_proc_the_group_is_ended),
        cmocka_unit_test(what_can_not_be_ended_is_counted),
        cmocka_unit_test(a_foreign_proc_is_none),
        cmocka_unit_test(a_decline_lasts_as_long_as_it_goes_on),
        cmocka_unit_test(signals_and_memory_are_told),
        cmocka_unit_test(who_lives_is_named),
        cmocka_unit_test(what_ends_is_reaped_for_a_while),
        cmocka_unit_test(somebody_elses_tree_is_killed_whole),
        cmocka_unit_test(what_may_not_be_killed_is_counted),
        cmocka_unit_test(what_dead_keepers_leave_ends_as_well),
        cmocka_unit_test(the_end_of_one_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
