#include "loop.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io.h"
#include "mem.h"

#define FOREVER_MS (INT64_MAX / 2)
#define LONGEST_SLEEP_MS 3600000
#define RETRY_MS 50 /* when the kernel had no memory to watch a descriptor */

enum kind { KIND_FD, KIND_TIMER, KIND_CHILD };

struct loop_source {
    struct loop *loop;
    struct loop_source *next, **link; /* list of its kind; link == NULL: removed, waits for its release */
    enum kind kind;
    int fd;
    int events;   /* descriptor: what is waited for */
    bool watched; /* descriptor: the kernel knows it */
    bool armed;   /* timer */
    long long due;
    pid_t pid;
    union {
        loop_fd_fn fd;
        loop_timer_fn timer;
        loop_child_fn child;
    } fn;
    void *arg;
};

struct loop {
    int epoll;
    int signal_pipe[2];
    struct loop_source *sources[3]; /* by kind */
    struct loop_source *removed;
    size_t unwatched; /* descriptors for which the kernel had no memory */
    loop_signal_fn on_signal;
    void *on_signal_arg;
    bool stopped;
    int result;
};

/* Where the signal handlers write; one loop a process. Signals that are pending are kept as bits, so that a
 * full pipe loses none. */
static int signal_fd = -1;
static volatile sig_atomic_t signal_pending[NSIG];

static void note_signal(int signal)
{
    int saved = errno;
    signal_pending[signal] = 1;
    if (signal_fd >= 0 && write(signal_fd, "", 1) < 0) {
        /* full: a wake-up is under way */
    }
    errno = saved;
}

/* Whoever started this process may have blocked the signal, which is inherited. */
static void handle(int signal, void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART | SA_NOCLDSTOP};
    sigset_t set;
    sigemptyset(&action.sa_mask);
    sigaction(signal, &action, NULL);
    sigemptyset(&set);
    sigaddset(&set, signal);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
}

static void link_source(struct loop *loop, struct loop_source *s)
{
    struct loop_source **head = &loop->sources[s->kind];
    s->next = *head;
    if (s->next)
        s->next->link = &s->next;
    s->link = head;
    *head = s;
}

static struct loop_source *source_new(struct loop *loop, enum kind kind, void *arg)
{
    struct loop_source *s = mem_zalloc(sizeof *s);
    s->loop = loop;
    s->kind = kind;
    s->fd = -1;
    s->arg = arg;
    link_source(loop, s);
    return s;
}

static void on_signal_pipe(void *arg, int events);

struct loop *loop_new(struct err *err)
{
    struct loop *loop = mem_zalloc(sizeof *loop);
    loop->signal_pipe[0] = loop->signal_pipe[1] = -1;
    loop->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (loop->epoll < 0 || pipe2(loop->signal_pipe, O_CLOEXEC | O_NONBLOCK) < 0) {
        err_sys(err, ERR_INTERNAL, errno, "event loop");
        loop_free(loop);
        return NULL;
    }
    signal_fd = loop->signal_pipe[1];
    loop_fd(loop, loop->signal_pipe[0], LOOP_READ, on_signal_pipe, loop);
    handle(SIGCHLD, note_signal);
    handle(SIGPIPE, SIG_IGN);
    note_signal(SIGCHLD); /* a child that has ended already is not announced again */
    return loop;
}

static void free_list(struct loop_source *s)
{
    while (s) {
        struct loop_source *next = s->next;
        free(s);
        s = next;
    }
}

void loop_free(struct loop *loop)
{
    for (size_t i = 0; i < 3; i++)
        free_list(loop->sources[i]);
    free_list(loop->removed);
    signal_fd = -1;
    io_close(&loop->signal_pipe[0]);
    io_close(&loop->signal_pipe[1]);
    io_close(&loop->epoll);
    free(loop);
}

/* In the child, with all signals blocked: none finds a handler of the parent's. */
static void leave(struct loop *loop)
{
    signal_fd = -1;
    memset((void *)signal_pending, 0, sizeof signal_pending);
    io_close(&loop->signal_pipe[0]);
    io_close(&loop->signal_pipe[1]);
    io_close(&loop->epoll);
    handle(SIGCHLD, SIG_DFL);
    handle(SIGPIPE, SIG_DFL);
    handle(SIGTERM, SIG_DFL);
    handle(SIGINT, SIG_DFL);
}

pid_t loop_fork(struct loop *loop)
{
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    pid_t pid = fork();
    int why = errno;
    if (pid == 0)
        leave(loop);
    sigprocmask(SIG_SETMASK, &before, NULL);
    errno = why;
    return pid;
}

static uint32_t to_epoll(int events)
{
    return (events & LOOP_READ ? EPOLLIN : 0u) | (events & LOOP_WRITE ? EPOLLOUT : 0u);
}

/* What fails for want of memory (or of the user's watches, which are counted) is tried again later: a
 * descriptor that nobody waits for would hang its client for ever. */
static void watch(struct loop_source *s)
{
    struct epoll_event e = {.events = to_epoll(s->events), .data.ptr = s};
    s->watched =
        epoll_ctl(s->loop->epoll, EPOLL_CTL_ADD, s->fd, &e) == 0 || (errno != ENOMEM && errno != ENOSPC);
    s->loop->unwatched -= s->watched;
}

static void watch_again(struct loop *loop)
{
    for (struct loop_source *s = loop->sources[KIND_FD]; s && loop->unwatched > 0; s = s->next)
        if (!s->watched)
            watch(s);
}

struct loop_source *loop_fd(struct loop *loop, int fd, int events, loop_fd_fn fn, void *arg)
{
    struct loop_source *s = source_new(loop, KIND_FD, arg);
    s->fd = fd;
    s->fn.fd = fn;
    s->events = events;
    loop->unwatched++;
    watch(s);
    return s;
}

void loop_fd_events(struct loop_source *s, int events)
{
    if (!s->link)
        return; /* removed, and its descriptor may be another source's by now */
    struct epoll_event e = {.events = to_epoll(events), .data.ptr = s};
    bool changes = s->events != events;
    s->events = events;
    if (s->watched && changes)
        epoll_ctl(s->loop->epoll, EPOLL_CTL_MOD, s->fd, &e);
}

struct loop_source *loop_timer(struct loop *loop, int64_t ms, loop_timer_fn fn, void *arg)
{
    struct loop_source *s = source_new(loop, KIND_TIMER, arg);
    s->fn.timer = fn;
    loop_timer_set(s, ms);
    return s;
}

void loop_timer_set(struct loop_source *s, int64_t ms)
{
    if (ms < 1)
        ms = 1; /* never at once: a callback that sets its own timer must not spin */
    s->due = now_ms() + (ms < FOREVER_MS ? ms : FOREVER_MS);
    s->armed = true;
}

int64_t loop_timer_left(const struct loop_source *s)
{
    int64_t left = s->due - now_ms();
    return !s->armed ? -1 : left > 0 ? left : 0;
}

struct loop_source *loop_child(struct loop *loop, pid_t pid, loop_child_fn fn, void *arg)
{
    struct loop_source *s = source_new(loop, KIND_CHILD, arg);
    s->pid = pid;
    s->fn.child = fn;
    return s;
}

void loop_remove(struct loop_source *s)
{
    if (!s || !s->link)
        return;
    if (s->kind == KIND_FD && s->watched)
        epoll_ctl(s->loop->epoll, EPOLL_CTL_DEL, s->fd, NULL);
    else if (s->kind == KIND_FD)
        s->loop->unwatched--;
    *s->link = s->next;
    if (s->next)
        s->next->link = s->link;
    s->link = NULL;
    s->next = s->loop->removed;
    s->loop->removed = s;
}

void loop_drop(struct loop_source **source)
{
    loop_remove(*source);
    *source = NULL;
}

void loop_on_signal(struct loop *loop, loop_signal_fn fn, void *arg)
{
    loop->on_signal = fn;
    loop->on_signal_arg = arg;
    handle(SIGTERM, note_signal);
    handle(SIGINT, note_signal);
}

static struct loop_source *watcher_of(struct loop *loop, pid_t pid)
{
    struct loop_source *any = NULL;
    for (struct loop_source *s = loop->sources[KIND_CHILD]; s; s = s->next) {
        if (s->pid == pid)
            return s;
        if (s->pid == 0)
            any = s;
    }
    return any;
}

static void reap(struct loop *loop)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        struct loop_source *s = watcher_of(loop, pid);
        if (!s)
            continue;
        if (s->pid != 0)
            loop_remove(s);
        s->fn.child(s->arg, pid, status);
    }
}

static void on_signal_pipe(void *arg, int events)
{
    struct loop *loop = arg;
    char drain[64];
    (void)events;
    while (read(loop->signal_pipe[0], drain, sizeof drain) > 0)
        ;
    if (signal_pending[SIGCHLD]) {
        signal_pending[SIGCHLD] = 0;
        reap(loop);
    }
    static const int ends[] = {SIGTERM, SIGINT};
    for (size_t i = 0; i < 2; i++) {
        if (!signal_pending[ends[i]])
            continue;
        signal_pending[ends[i]] = 0;
        if (loop->on_signal)
            loop->on_signal(loop->on_signal_arg, ends[i]);
    }
}

/* The timer that is due first; of those due at the same moment the one made first. */
static struct loop_source *first_timer(const struct loop *loop)
{
    struct loop_source *first = NULL;
    for (struct loop_source *s = loop->sources[KIND_TIMER]; s; s = s->next)
        if (s->armed && (!first || s->due <= first->due))
            first = s;
    return first;
}

static int next_timeout(const struct loop *loop)
{
    const struct loop_source *s = first_timer(loop);
    long long most = loop->unwatched > 0 ? RETRY_MS : LONGEST_SLEEP_MS;
    if (!s)
        return loop->unwatched > 0 ? RETRY_MS : -1;
    long long left = s->due - now_ms();
    return left < 0 ? 0 : (int)(left > most ? most : left);
}

/* A callback may remove, add and set any timer; what is set meanwhile is due later than `now`, so this ends.
 */
static void run_timers(struct loop *loop)
{
    long long now = now_ms();
    for (struct loop_source *s; (s = first_timer(loop)) && s->due <= now;) {
        s->armed = false;
        s->fn.timer(s->arg);
    }
}

static void release_removed(struct loop *loop)
{
    free_list(loop->removed);
    loop->removed = NULL;
}

int loop_run(struct loop *loop)
{
    struct epoll_event events[64];
    while (!loop->stopped) {
        if (loop->unwatched > 0)
            watch_again(loop);
        int n = epoll_wait(loop->epoll, events, 64, next_timeout(loop));
        for (int i = 0; i < n; i++) {
            struct loop_source *s = events[i].data.ptr;
            uint32_t e = events[i].events;
            int what = (e & EPOLLIN ? LOOP_READ : 0) | (e & EPOLLOUT ? LOOP_WRITE : 0) |
                       (e & (EPOLLHUP | EPOLLERR) ? LOOP_HANGUP : 0);
            if (s->link)
                s->fn.fd(s->arg, what);
        }
        run_timers(loop);
        release_removed(loop);
    }
    loop->stopped = false;
    return loop->result;
}

void loop_stop(struct loop *loop, int result)
{
    loop->stopped = true;
    loop->result = result;
}
