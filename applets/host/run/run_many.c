#include "host/run/run_many.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "applet.h"
#include "host/release/release.h"
#include "io.h"
#include "json.h"
#include "mem.h"
#include "osinfo.h"

#define LINE_MAX_BYTES (64u << 10) /* a longer one is printed in pieces */
#define KEPT_MAX (256u << 10)      /* bytes of a stream, for --json */
#define READ_STEP 16384

/* One process at work: its stdout and stderr. */
struct worker {
    pid_t pid; /* 0: none */
    int fds[2];
    struct buf text[2];
    unsigned long long omitted[2];
    size_t target;
    long long began;
};

struct many {
    const struct run_many *how;
    const struct target_list *targets;
    struct worker *workers;
    size_t next, done, failed;
    int worst;
    struct buf failures;
};

static volatile sig_atomic_t interrupted;

static void note(int number)
{
    interrupted = number;
}

static void catch_signals(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction mine = {.sa_handler = note};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaction(numbers[i], &mine, NULL);
}

/* ---- a worker ---- */

static _Noreturn void work(const struct many *m, const struct target *t, int out, int err, pid_t parent)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        signal(numbers[i], SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* by which what it runs ends as well */
    if (getppid() != parent || dup2(out, STDOUT_FILENO) < 0 || dup2(err, STDERR_FILENO) < 0)
        _exit(EXIT_FAILED);
    close(out);
    close(err);
    int null = open("/dev/null", O_RDONLY);
    if (null > 0)
        dup2(null, STDIN_FILENO);
    target_be_one_of_many(t);
    int status = m->how->one(m->how->arg, t);
    fflush(stdout);
    _exit(status);
}

static int start_worker(struct many *m, struct worker *w)
{
    int pipes[2][2] = {{-1, -1}, {-1, -1}};
    pid_t parent = getpid(), pid = io_pipes(pipes, 2) < 0 ? -1 : fork();
    if (pid == 0)
        work(m, &m->targets->list[m->next], pipes[0][1], pipes[1][1], parent);
    io_close(&pipes[0][1]);
    io_close(&pipes[1][1]);
    if (pid < 0) {
        io_close(&pipes[0][0]);
        io_close(&pipes[1][0]);
        return -1;
    }
    *w = (struct worker){.pid = pid,
                         .fds = {pipes[0][0], pipes[1][0]},
                         .text = {BUF_INIT, BUF_INIT},
                         .target = m->next++,
                         .began = now_ms()};
    return 0;
}

/* ---- what it says ---- */

static const char *name_of(const struct many *m, const struct worker *w)
{
    return m->targets->list[w->target].text;
}

static void put_line(const struct many *m, const struct worker *w, int i, const char *line, size_t n)
{
    struct buf out BUF_AUTO = BUF_INIT;
    buf_addf(&out, "%s: ", name_of(m, w));
    buf_add(&out, line, n);
    buf_addc(&out, '\n');
    io_write_all(i == 0 ? STDOUT_FILENO : STDERR_FILENO, out.data, out.len);
}

/* Whole lines; at the end, and of one that is too long, what there is. */
static void print_lines(const struct many *m, struct worker *w, int i, bool all)
{
    struct buf *text = &w->text[i];
    const char *at = text->data, *stop = at + text->len, *end;
    while (at < stop && (end = memchr(at, '\n', (size_t)(stop - at))) != NULL) {
        put_line(m, w, i, at, (size_t)(end - at));
        at = end + 1;
    }
    if (at < stop && (all || stop - at > LINE_MAX_BYTES)) {
        put_line(m, w, i, at, (size_t)(stop - at));
        at = stop;
    }
    if (text->len > 0)
        buf_consume(text, (size_t)(at - text->data));
}

static void keep(struct worker *w, int i, const char *data, size_t n)
{
    size_t room = KEPT_MAX - w->text[i].len;
    buf_add(&w->text[i], data, n < room ? n : room);
    w->omitted[i] += n < room ? 0 : n - room;
}

static void print_object(const struct many *m, const struct worker *w, int status)
{
    struct buf out BUF_AUTO = BUF_INIT;
    buf_addc(&out, '{');
    json_member_string(&out, "target", name_of(m, w));
    json_member_int(&out, "status", status);
    json_member_text(&out, "stdout", buf_str(&w->text[0]), w->text[0].len);
    json_member_text(&out, "stderr", buf_str(&w->text[1]), w->text[1].len);
    json_member_int(&out, "omitted_bytes", (long long)(w->omitted[0] + w->omitted[1]));
    json_member_int(&out, "ms", now_ms() - w->began);
    buf_adds(&out, "}\n");
    io_write_all(STDOUT_FILENO, out.data, out.len);
}

static void finish_worker(struct many *m, struct worker *w)
{
    int raw = 0;
    while (waitpid(w->pid, &raw, 0) < 0 && errno == EINTR)
        continue;
    int status = WIFSIGNALED(raw) ? 128 + WTERMSIG(raw) : WEXITSTATUS(raw);
    for (int i = 0; i < 2 && !m->how->inject->json; i++)
        print_lines(m, w, i, true);
    if (m->how->inject->json)
        print_object(m, w, status);
    if (status > m->worst)
        m->worst = status;
    if (status != 0)
        buf_addf(&m->failures, "%-6d  %s\n", status, name_of(m, w));
    m->failed += status != 0;
    m->done++;
    buf_release(&w->text[0]);
    buf_release(&w->text[1]);
    w->pid = 0;
}

static void read_worker(struct many *m, struct worker *w, int i)
{
    char data[READ_STEP];
    ssize_t n = read(w->fds[i], data, sizeof data);
    if (n > 0 && m->how->inject->json) {
        keep(w, i, data, (size_t)n);
    } else if (n > 0) {
        buf_add(&w->text[i], data, (size_t)n);
        print_lines(m, w, i, false);
    } else if (n == 0 || errno != EINTR) {
        io_close(&w->fds[i]);
    }
    if (w->fds[0] < 0 && w->fds[1] < 0)
        finish_worker(m, w);
}

/* ---- the whole ---- */

static bool refill(struct many *m)
{
    bool busy = false;
    for (int i = 0; i < m->how->inject->jobs; i++) {
        struct worker *w = &m->workers[i];
        if (w->pid == 0 && m->next < m->targets->n && !interrupted && start_worker(m, w) < 0) {
            applet_failed(m->how->applet, "cannot start a process: %s", err_text(errno));
            m->worst = EXIT_FAILED;
            m->next = m->targets->n;
        }
        busy = busy || w->pid > 0;
    }
    return busy;
}

static void pass_on(const struct many *m, int number)
{
    for (int i = 0; i < m->how->inject->jobs; i++)
        if (m->workers[i].pid > 0)
            kill(m->workers[i].pid, number);
}

static void wait_some(struct many *m, struct pollfd *polled)
{
    static int passed;
    int n = m->how->inject->jobs;
    for (int i = 0; i < 2 * n; i++)
        polled[i] = (struct pollfd){.fd = m->workers[i / 2].pid > 0 ? m->workers[i / 2].fds[i % 2] : -1,
                                    .events = POLLIN};
    if (interrupted && !passed)
        pass_on(m, passed = interrupted);
    if (poll(polled, (nfds_t)n * 2, -1) < 0)
        return;
    for (int i = 0; i < 2 * n; i++)
        if (polled[i].fd >= 0 && polled[i].revents)
            read_worker(m, &m->workers[i / 2], i % 2);
}

int run_many(const struct run_many *how, const struct target_list *targets)
{
    struct many m = {.how = how, .targets = targets, .failures = BUF_INIT};
    struct release_file own RELEASE_FILE_AUTO = RELEASE_FILE_INIT;
    if (release_pick("linux", os_arch(), &own, NULL) == 0)
        how->inject->own = &own;
    m.workers = mem_zalloc((size_t)how->inject->jobs * sizeof *m.workers);
    struct pollfd *polled MEM_AUTO = mem_zalloc(2 * (size_t)how->inject->jobs * sizeof *polled);
    fflush(stdout); /* a worker has nothing of ours to write */
    catch_signals();
    while (refill(&m))
        wait_some(&m, polled);
    if (m.failed > 0 && !how->inject->json)
        fprintf(stderr, "status  target\n%s%zu of %zu failed\n", buf_str(&m.failures), m.failed, targets->n);
    free(m.workers);
    buf_release(&m.failures);
    how->inject->own = NULL;
    return interrupted ? 128 + interrupted : m.worst;
}

int run_many_collect(struct target_list *targets, char *const *words, int n,
                     const struct runtime_options *runtimes, int timeout_ms, const char *applet)
{
    struct transport transport;
    struct err err;
    sigset_t before;
    int status = EXIT_OK;
    sigprocmask(SIG_SETMASK, NULL, &before);
    if (transport_init(&transport, timeout_ms, &err) < 0)
        return applet_failed(applet, "%s", err.msg);
    for (int i = 0; i < n && status == EXIT_OK; i++)
        if (target_list_add(targets, words[i], runtimes, &transport, &err) < 0)
            status = usage_error(applet, "%s", err.msg);
    for (size_t i = 0; i < targets->n && status == EXIT_OK; i++) {
        const struct target *t = &targets->list[i];
        if (t->unlisted) {
            applet_failed(applet, "%s: %s", t->text, t->unlisted);
            status = EXIT_OF_STEP + STEP_TARGET;
        } else if (t->kind->folder)
            status = usage_error(applet, "'%s': nothing runs in a directory", t->text);
    }
    transport_release(&transport);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return status;
}
