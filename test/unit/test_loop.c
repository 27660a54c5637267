#include "support.h"

#include <sys/socket.h>

#include "io.h"
#include "loop.h"
#include "mem.h"

static struct loop *loop;

static int set_up(void **state)
{
    (void)state;
    loop = loop_new(NULL);
    return loop ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    loop_free(loop);
    return 0;
}

#define HUNG (-99)

static void hung(void *arg)
{
    (void)arg;
    loop_stop(loop, HUNG);
}

static void what_goes_to_nobody_is_an_error(void **state)
{
    (void)state;
    struct sigaction now;
    assert_int_equal(sigaction(SIGPIPE, NULL, &now), 0);
    assert_true(now.sa_handler == SIG_IGN);
}

static int run(void)
{
    struct loop_source *guard = loop_timer(loop, PATIENCE_MS, hung, NULL);
    int result = loop_run(loop);
    loop_remove(guard);
    return result;
}

static void stop(void *arg)
{
    loop_stop(loop, arg ? *(int *)arg : 0);
}

/* Everything that is due or ready within so many milliseconds. */
static void run_for(int ms)
{
    struct loop_source *timer = loop_timer(loop, ms, stop, NULL);
    assert_int_equal(run(), 0);
    loop_remove(timer);
}

/* ---- descriptors ---- */

struct watched {
    int fd, peer;
    struct loop_source *source;
    int calls, events;
};

static void watch(struct watched *w, int events, loop_fd_fn fn)
{
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    *w = (struct watched){.fd = ends[0], .peer = ends[1]};
    w->source = loop_fd(loop, w->fd, events, fn, w);
}

static void unwatch(struct watched *w)
{
    loop_drop(&w->source);
    io_close(&w->fd);
    io_close(&w->peer);
}

static void note(void *arg, int events)
{
    struct watched *w = arg;
    w->calls++;
    w->events = events;
    loop_stop(loop, 0);
}

static void events_are_those_asked_for(void **state)
{
    (void)state;
    struct watched w;
    watch(&w, LOOP_READ, note);
    run_for(5);
    assert_int_equal(w.calls, 0);
    assert_int_equal(io_write_all(w.peer, "x", 1), 0);
    assert_int_equal(run(), 0);
    assert_int_equal(w.events, LOOP_READ);
    loop_fd_events(w.source, LOOP_READ | LOOP_WRITE);
    assert_int_equal(run(), 0);
    assert_int_equal(w.events, LOOP_READ | LOOP_WRITE);
    loop_fd_events(w.source, LOOP_WRITE);
    assert_int_equal(run(), 0);
    assert_int_equal(w.events, LOOP_WRITE);
    loop_fd_events(w.source, 0);
    int calls = w.calls;
    run_for(5);
    assert_int_equal(w.calls, calls);
    io_close(&w.peer); /* told although nothing is waited for */
    assert_int_equal(run(), 0);
    assert_int_equal(w.events, LOOP_HANGUP);
    loop_fd_events(w.source, LOOP_READ);
    assert_int_equal(run(), 0);
    assert_int_equal(w.events, LOOP_READ | LOOP_HANGUP); /* what came before the end is still to be read */
    unwatch(&w);
}

#define N_WATCHED 50

static struct watched many[N_WATCHED];
static int calls_in_all, calls_of_new;

static void note_new(void *arg, int events)
{
    struct watched *w = arg;
    (void)events;
    calls_of_new++;
    w->calls++;
    loop_drop(&w->source);
    if (calls_of_new == N_WATCHED - 1)
        loop_stop(loop, 0);
}

/* All are ready in one round; the first that is called takes the others away, and gives their descriptors'
 * numbers to new sources. */
static void replace_the_others(void *arg, int events)
{
    struct watched *me = arg;
    (void)events;
    calls_in_all++;
    for (int i = 0; i < N_WATCHED; i++) {
        struct watched *w = &many[i];
        if (w == me)
            continue;
        int was = w->fd;
        loop_remove(w->source);
        loop_remove(w->source); /* once more does no harm */
        loop_fd_events(w->source, LOOP_WRITE);
        close(w->fd);
        close(w->peer);
        watch(w, LOOP_WRITE, note_new);
        assert_int_equal(w->fd, was);
    }
    loop_drop(&me->source);
}

static void a_removed_source_is_not_called_any_more(void **state)
{
    (void)state;
    calls_in_all = calls_of_new = 0;
    for (int i = 0; i < N_WATCHED; i++)
        watch(&many[i], LOOP_READ, replace_the_others);
    for (int i = 0; i < N_WATCHED; i++)
        assert_int_equal(io_write_all(many[i].peer, "x", 1), 0);
    assert_int_equal(run(), 0);
    assert_int_equal(calls_in_all, 1);
    assert_int_equal(calls_of_new, N_WATCHED - 1);
    for (int i = 0; i < N_WATCHED; i++)
        unwatch(&many[i]);
}

/* A source that is gone must not change what another one waits for under the same number. */
static void a_removed_source_changes_nothing(void **state)
{
    (void)state;
    struct watched w;
    watch(&w, LOOP_READ, note);
    struct loop_source *old = w.source;
    loop_remove(old);
    w.source = loop_fd(loop, w.fd, LOOP_READ, note, &w);
    loop_fd_events(old, LOOP_WRITE);
    loop_timer_set(old, 1);
    run_for(5);
    assert_int_equal(w.calls, 0);
    assert_int_equal(io_write_all(w.peer, "x", 1), 0);
    assert_int_equal(run(), 0);
    assert_int_equal(w.calls, 1);
    unwatch(&w);
    loop_remove(NULL);
    struct loop_source *none = NULL;
    loop_drop(&none);
}

/* ---- timers ---- */

static int order[16], n_order;

static void note_order(void *arg)
{
    order[n_order++] = *(int *)arg;
}

static void timers_fire_once_in_the_order_they_are_due(void **state)
{
    (void)state;
    static int ids[] = {0, 1, 2, 3, 4, 5};
    static const int due[] = {12, 4, 8, 4, 1, 4};
    struct loop_source *timers[6];
    n_order = 0;
    long long begun = now_ms();
    for (int i = 0; i < 6; i++)
        timers[i] = loop_timer(loop, due[i], note_order, &ids[i]);
    while (now_ms() < begun + 20)
        ; /* all are due in the same round */
    run_for(1);
    run_for(20);
    static const int want[] = {4, 1, 3, 5, 2, 0};
    assert_int_equal(n_order, 6);
    assert_memory_equal(order, want, sizeof want);
    for (int i = 0; i < 6; i++)
        loop_remove(timers[i]);
}

static void a_timer_does_not_fire_early(void **state)
{
    (void)state;
    for (int ms = 0; ms < 12; ms++) {
        long long begun = now_ms();
        struct loop_source *timer = loop_timer(loop, ms, stop, NULL);
        assert_int_equal(run(), 0);
        assert_true(now_ms() - begun >= (ms ? ms : 1));
        loop_remove(timer);
    }
}

struct repeated {
    struct loop_source *timer;
    int64_t ms;
    int fired, stop_at;
};

static void again(void *arg)
{
    struct repeated *r = arg;
    loop_timer_set(r->timer, r->ms);
    if (++r->fired == r->stop_at)
        loop_stop(loop, 0);
}

/* However short it is set: descriptors and other timers have their turn. */
static void a_timer_that_sets_itself_starves_nobody(void **state)
{
    (void)state;
    static const int64_t shortest[] = {1, 0, -5, INT64_MIN};
    for (size_t i = 0; i < 4; i++) {
        struct watched w;
        watch(&w, LOOP_WRITE, note);
        struct repeated r = {.ms = shortest[i]};
        r.timer = loop_timer(loop, shortest[i], again, &r);
        assert_int_equal(run(), 0);
        assert_int_equal(w.calls, 1);
        unwatch(&w);
        r.stop_at = r.fired + 5;
        long long begun = now_ms();
        assert_int_equal(run(), 0);
        assert_true(now_ms() - begun >= 4);
        loop_remove(r.timer);
    }
}

static void setting_a_timer_forgets_what_was_set(void **state)
{
    (void)state;
    static int id = 1;
    n_order = 0;
    struct loop_source *timer = loop_timer(loop, 1, note_order, &id);
    loop_timer_set(timer, INT64_MAX);
    run_for(10);
    assert_int_equal(n_order, 0);
    loop_timer_set(timer, 2);
    run_for(10);
    assert_int_equal(n_order, 1);
    run_for(5);
    assert_int_equal(n_order, 1); /* once */
    loop_timer_set(timer, 1);
    run_for(10);
    assert_int_equal(n_order, 2);
    loop_remove(timer);
}

#define N_TIMERS 300

static struct loop_source *timers[N_TIMERS];
static bool alive[N_TIMERS];
static int fired, fired_dead, n_made;

static void make_timer(int i);

/* Each removes one, makes another anew and sets a third again. */
static void meddle(void *arg)
{
    int i = (int)(intptr_t)arg;
    fired++;
    fired_dead += !alive[i];
    int victim = (i * 7 + 1) % N_TIMERS, renewed = (i * 13 + 5) % N_TIMERS, delayed = (i * 29 + 3) % N_TIMERS;
    alive[victim] = false;
    loop_drop(&timers[victim]);
    if (n_made < 3 * N_TIMERS && !alive[renewed])
        make_timer(renewed);
    if (alive[delayed])
        loop_timer_set(timers[delayed], 2);
    if (fired == 5 * N_TIMERS)
        loop_stop(loop, 0);
}

static void make_timer(int i)
{
    n_made++;
    alive[i] = true;
    timers[i] = loop_timer(loop, 1, meddle, (void *)(intptr_t)i);
}

static void timers_may_remove_make_and_set_each_other(void **state)
{
    (void)state;
    fired = fired_dead = n_made = 0;
    for (int i = 0; i < N_TIMERS; i++)
        make_timer(i);
    run_for(100);
    assert_true(fired > N_TIMERS / 2);
    assert_int_equal(fired_dead, 0);
    for (int i = 0; i < N_TIMERS; i++)
        loop_drop(&timers[i]);
}

/* ---- memory, wake-ups ---- */

static void replace_source(void *arg)
{
    struct repeated *r = arg;
    for (int i = 0; i < 1000; i++)
        loop_remove(loop_timer(loop, 1, stop, NULL));
    struct loop_source *old = r->timer;
    r->timer = loop_timer(loop, 1, replace_source, r);
    loop_remove(old);
    if (++r->fired == 100)
        loop_stop(loop, 0);
}

static void removed_sources_give_their_memory_back(void **state)
{
    (void)state;
    not_sanitized();
    struct repeated r = {.fired = 90};
    r.timer = loop_timer(loop, 1, replace_source, &r);
    assert_int_equal(run(), 0);
    long before = peak_memory();
    r.fired = 0;
    assert_int_equal(run(), 0);
    assert_true(peak_memory() - before < 1024);
    loop_remove(r.timer);
}

static void an_idle_loop_sleeps(void **state)
{
    (void)state;
    struct rusage before, after;
    struct watched w;
    watch(&w, LOOP_READ, note);
    struct loop_source *far = loop_timer(loop, INT64_MAX, hung, NULL);
    run_for(1); /* what is new has been dealt with */
    getrusage(RUSAGE_SELF, &before);
    run_for(150);
    getrusage(RUSAGE_SELF, &after);
    assert_in_range(after.ru_nvcsw - before.ru_nvcsw, 1, 20);
    loop_remove(far);
    unwatch(&w);
}

/* ---- children ---- */

struct child {
    pid_t pid;
    struct loop_source *source;
    int calls, status;
};

static int n_ended, n_expected;

static void child_ended(void *arg, pid_t pid, int status)
{
    struct child *c = arg;
    assert_int_equal(pid, c->pid);
    c->calls++;
    c->status = status;
    if (++n_ended == n_expected)
        loop_stop(loop, 0);
}

static pid_t fork_exit(int code)
{
    pid_t pid = fork();
    if (pid == 0) {
        if (code < 0)
            kill(getpid(), -code);
        _exit(code);
    }
    assert_true(pid > 0);
    return pid;
}

static void wait_until_dead(pid_t pid)
{
    siginfo_t info;
    while (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) < 0 && errno == EINTR)
        ;
}

static void assert_no_children(void)
{
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

static void every_exit_is_told_once(void **state)
{
    (void)state;
    static struct child children[200];
    n_ended = 0;
    n_expected = 200;
    for (int i = 0; i < 200; i++) {
        children[i] = (struct child){.pid = fork_exit(i % 3 == 2 ? -SIGKILL : i)};
        if (i % 50 == 0)
            wait_until_dead(children[i].pid); /* also before it is watched */
        children[i].source = loop_child(loop, children[i].pid, child_ended, &children[i]);
    }
    assert_int_equal(run(), 0);
    for (int i = 0; i < 200; i++) {
        assert_int_equal(children[i].calls, 1);
        if (i % 3 == 2)
            assert_true(WIFSIGNALED(children[i].status) && WTERMSIG(children[i].status) == SIGKILL);
        else
            assert_true(WIFEXITED(children[i].status) && WEXITSTATUS(children[i].status) == i);
    }
    assert_no_children();
}

/* Also those that ended before there was a loop, and orphans that nobody has heard of. */
static void unwatched_children_are_reaped(void **state)
{
    (void)state;
    loop_free(loop);
    wait_until_dead(fork_exit(0));
    loop = loop_new(NULL);
    run_for(20);
    assert_no_children();
    fork_exit(0);
    struct child forgotten = {.pid = fork_exit(0)};
    loop_remove(loop_child(loop, forgotten.pid, child_ended, &forgotten));
    while (waitpid(-1, NULL, WNOHANG) >= 0 && errno != ECHILD)
        run_for(2);
    assert_int_equal(forgotten.calls, 0);
}

static struct child pair[2];

static void remove_the_other(void *arg, pid_t pid, int status)
{
    struct child *c = arg;
    (void)pid, (void)status;
    c->calls++;
    loop_remove(pair[c == pair].source);
}

static void a_watcher_may_remove_another(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        pair[i] = (struct child){.pid = fork_exit(0)};
        pair[i].source = loop_child(loop, pair[i].pid, remove_the_other, &pair[i]);
    }
    for (int i = 0; i < 2; i++)
        wait_until_dead(pair[i].pid);
    run_for(30);
    assert_int_equal(pair[0].calls + pair[1].calls, 1);
    assert_no_children();
}

static void stop_on_signal(void *arg, int signal)
{
    (void)arg;
    loop_stop(loop, signal);
}

static void check_blocked_signals(void *arg)
{
    (void)arg;
    sigset_t all;
    sigfillset(&all);
    CHECK(sigprocmask(SIG_SETMASK, &all, NULL) == 0);
    loop = loop_new(NULL);
    loop_on_signal(loop, stop_on_signal, NULL);
    struct child c = {.pid = fork_exit(3)};
    n_ended = 0;
    n_expected = 1;
    loop_child(loop, c.pid, child_ended, &c);
    CHECK(run() == 0 && c.calls == 1 && WEXITSTATUS(c.status) == 3);
    raise(SIGTERM);
    CHECK(run() == SIGTERM);
}

/* A starter's mask is inherited: a server that can't hear of its children's ends would never answer. */
static void signals_blocked_by_the_starter_are_heard(void **state)
{
    (void)state;
    in_child(check_blocked_signals, NULL);
}

/* ---- signals ---- */

static int signals_seen[NSIG];

static void note_signal_seen(void *arg, int signal)
{
    (void)arg;
    signals_seen[signal]++;
    if (signals_seen[SIGTERM] && signals_seen[SIGINT])
        loop_stop(loop, 0);
}

/* The pipe that wakes the loop is full long before the last: still none is lost. */
static void no_signal_is_lost(void **state)
{
    (void)state;
    memset(signals_seen, 0, sizeof signals_seen);
    struct child c = {.pid = fork_exit(0)};
    loop_child(loop, c.pid, child_ended, &c);
    n_ended = 0;
    n_expected = -1;
    loop_on_signal(loop, note_signal_seen, NULL);
    for (int i = 0; i < 70000; i++)
        raise(SIGTERM);
    raise(SIGINT);
    assert_int_equal(run(), 0);
    assert_int_equal(signals_seen[SIGTERM], 1);
    assert_int_equal(signals_seen[SIGINT], 1);
    while (!c.calls)
        run_for(2);
    signal(SIGTERM, SIG_DFL);
    signal(SIGINT, SIG_DFL);
}

static void a_stopped_child_has_not_ended(void **state)
{
    (void)state;
    struct child c = {.pid = fork()};
    if (c.pid == 0) {
        raise(SIGSTOP);
        _exit(4);
    }
    n_ended = 0;
    n_expected = 1;
    loop_child(loop, c.pid, child_ended, &c);
    siginfo_t info;
    while (waitid(P_PID, (id_t)c.pid, &info, WSTOPPED | WNOWAIT) < 0 && errno == EINTR)
        ;
    run_for(5);
    assert_int_equal(c.calls, 0);
    kill(c.pid, SIGCONT);
    assert_int_equal(run(), 0);
    assert_int_equal(WEXITSTATUS(c.status), 4);
}

/* ---- life ---- */

static void stopping_says_what_run_returns(void **state)
{
    (void)state;
    int result = 42;
    struct loop_source *timer = loop_timer(loop, 1, stop, &result);
    assert_int_equal(run(), 42);
    loop_stop(loop, 7); /* before it runs */
    assert_int_equal(run(), 7);
    result = 43;
    loop_timer_set(timer, 1);
    assert_int_equal(run(), 43); /* and not at once again */
    loop_remove(timer);
}

static void check_after_fork(void *arg)
{
    unsigned *before = arg;
    struct sigaction action;
    CHECK(open_descriptors() == *before);
    static const int ours[] = {SIGCHLD, SIGTERM, SIGINT, SIGPIPE};
    for (size_t i = 0; i < 4; i++)
        CHECK(sigaction(ours[i], NULL, &action) == 0 && action.sa_handler == SIG_DFL);
    loop = loop_new(NULL);
    struct child c = {.pid = fork_exit(5)};
    n_ended = 0;
    n_expected = 1;
    loop_child(loop, c.pid, child_ended, &c);
    CHECK(run() == 0 && WEXITSTATUS(c.status) == 5);
}

static void a_child_may_have_a_loop_of_its_own(void **state)
{
    (void)state;
    loop_free(loop);
    unsigned before = open_descriptors();
    loop = loop_new(NULL);
    loop_on_signal(loop, note_signal_seen, NULL);
    struct watched w;
    static int id;
    n_order = 0;
    struct loop_source *timer = loop_timer(loop, 1, note_order, &id);
    fflush(NULL);
    pid_t pid = loop_fork(loop);
    assert_true(pid >= 0);
    if (pid == 0) {
        alarm(PATIENCE_MS / 1000);
        check_after_fork(&before);
        _exit(0);
    }
    wait_for_check(pid);
    watch(&w, LOOP_WRITE, note);
    assert_int_equal(run(), 0);
    unwatch(&w);
    run_for(5);
    assert_int_equal(n_order, 1); /* the parent's is what it was */
    loop_remove(timer);
}

/* One that comes before the child has done anything ends it, and is neither lost nor the parent's. */
static void a_signal_ends_a_child_at_once(void **state)
{
    (void)state;
    memset(signals_seen, 0, sizeof signals_seen);
    loop_on_signal(loop, note_signal_seen, NULL);
    for (int i = 0; i < 200; i++) {
        int status;
        fflush(NULL);
        pid_t pid = loop_fork(loop);
        assert_true(pid >= 0);
        if (pid == 0) {
            alarm(PATIENCE_MS / 1000);
            pause();
            _exit(0);
        }
        assert_int_equal(kill(pid, SIGTERM), 0);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), SIGTERM);
    }
    run_for(5);
    assert_int_equal(signals_seen[SIGTERM], 0);
}

static void check_no_descriptors(void *arg)
{
    (void)arg;
    struct rlimit limit = {4, 4};
    struct err err = {0};
    io_close_others(NULL, 0);
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    CHECK(!loop_new(&err) && err.code == ERR_INTERNAL && strstr(err.msg, "Too many open files"));
    CHECK(open_descriptors() == 3);
}

static void no_descriptors_are_an_error(void **state)
{
    (void)state;
    in_child(check_no_descriptors, NULL);
}

static void no_descriptor_is_left_open(void **state)
{
    (void)state;
    loop_free(loop);
    unsigned before = open_descriptors();
    loop = loop_new(NULL);
    assert_true(open_descriptors() > before);
    loop_free(loop);
    assert_int_equal(open_descriptors(), before);
    loop = loop_new(NULL);
}

#define loop_test(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        loop_test(what_goes_to_nobody_is_an_error),
        loop_test(events_are_those_asked_for),
        loop_test(a_removed_source_is_not_called_any_more),
        loop_test(a_removed_source_changes_nothing),
        loop_test(timers_fire_once_in_the_order_they_are_due),
        loop_test(a_timer_does_not_fire_early),
        loop_test(a_timer_that_sets_itself_starves_nobody),
        loop_test(setting_a_timer_forgets_what_was_set),
        loop_test(timers_may_remove_make_and_set_each_other),
        loop_test(removed_sources_give_their_memory_back),
        loop_test(an_idle_loop_sleeps),
        loop_test(every_exit_is_told_once),
        loop_test(unwatched_children_are_reaped),
        loop_test(a_watcher_may_remove_another),
        loop_test(signals_blocked_by_the_starter_are_heard),
        loop_test(no_signal_is_lost),
        loop_test(a_stopped_child_has_not_ended),
        loop_test(stopping_says_what_run_returns),
        loop_test(a_child_may_have_a_loop_of_its_own),
        loop_test(a_signal_ends_a_child_at_once),
        loop_test(no_descriptors_are_an_error),
        loop_test(no_descriptor_is_left_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
