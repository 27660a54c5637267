#include "host/inject/inject_many.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <fcntl.h>

#include "applet.h"
#include "host/inject/inject_report.h"
#include "host/inject/recon.h"
#include "io.h"
#include "mem.h"

#define RESULT_MAX (64u << 10)

/* One process at work. */
struct worker {
    pid_t pid;
    int fd; /* what it says; -1: no worker */
    size_t target;
    struct buf result;
};

struct many {
    const struct inject_options *o;
    const struct target_list *targets;
    struct transport *transport;
    const char *applet;
    inject_many_fn one;
    struct worker *workers;
    struct pollfd *polled;
    char **results; /* of each target, its JSON text */
    size_t next, done, failed;
    int worst;
    bool terminal;
    long long began;
};

/* ---- a worker ---- */

static _Noreturn void work(struct many *m, const struct target *t, int fd)
{
    struct transport transport;
    struct inject_result r;
    struct buf out BUF_AUTO = BUF_INIT;
    struct err err;
    inject_result_init(&r, t->text);
    target_be_one_of_many(t);
    if (transport_init(&transport, m->o->timeout_ms, &err) < 0)
        inject_fail(&r, STEP_TARGET, "", &err);
    else
        m->one(m->o, t, &transport, &r);
    report_json(&r, &out);
    _exit(io_write_all(fd, out.data, out.len) < 0);
}

static int start_worker(struct many *m, struct worker *w)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -1;
    pid_t pid = fork();
    if (pid == 0)
        work(m, &m->targets->list[m->next], ends[1]);
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return -1;
    }
    *w = (struct worker){.pid = pid, .fd = ends[0], .target = m->next++, .result = {.max = RESULT_MAX}};
    return 0;
}

/* ---- results ---- */

static void show_progress(const struct many *m)
{
    if (!m->terminal)
        return;
    fprintf(stderr, "\r%zu of %zu done, %zu failed, %lld s ", m->done, m->targets->n, m->failed,
            (now_ms() - m->began) / 1000);
}

/* What a worker says when it can't say it itself. */
static void lost_worker(struct many *m, struct worker *w, int status)
{
    struct inject_result r;
    struct err err;
    inject_result_init(&r, m->targets->list[w->target].text);
    err_set(&err, ERR_INTERNAL, "its process ended without a word (status %d)", status);
    inject_fail(&r, STEP_TARGET, "", &err);
    buf_release(&w->result);
    report_json(&r, &w->result);
    inject_result_release(&r);
}

static void finish_worker(struct many *m, struct worker *w)
{
    int status = 0;
    struct span value;
    io_close(&w->fd);
    while (waitpid(w->pid, &status, 0) < 0 && errno == EINTR)
        continue;
    if (json_check(span_of(&w->result), NULL) < 0)
        lost_worker(m, w, status);
    int code =
        json_member(span_of(&w->result), "exit", &value, NULL) ? (int)strtol(value.s, NULL, 10) : EXIT_FAILED;
    if (code > m->worst)
        m->worst = code;
    m->failed += code != 0;
    m->done++;
    if (m->o->json) {
        printf("%s\n", buf_str(&w->result));
        fflush(stdout);
    }
    m->results[w->target] = buf_take(&w->result, &(size_t){0});
    show_progress(m);
}

/* Width on a terminal: characters, not bytes. */
static void put_cell(const char *text, size_t bytes, int width)
{
    int n = 0;
    for (size_t i = 0; i < bytes; i++)
        n += ((unsigned char)text[i] & 0xC0) != 0x80;
    printf("%.*s%*s", (int)bytes, text, n < width ? width - n + 2 : 2, "");
}

static struct span result_of(const struct many *m, size_t i)
{
    const char *text = m->results[i] ? m->results[i] : "{}";
    return (struct span){text, strlen(text)};
}

static bool failed_of(const struct many *m, size_t i)
{
    struct span ok;
    return !json_member(result_of(m, i), "ok", &ok, NULL) || !span_is(ok, "true");
}

static void put_target(struct buf *out, const struct many *m, size_t i)
{
    const char *text = m->targets->list[i].text;
    transport_show(out, text, strlen(text), 1000);
}

static void print_row(const struct many *m, size_t i, int width)
{
    struct span object = result_of(m, i);
    struct buf cell[5] = {BUF_INIT, BUF_INIT, BUF_INIT, BUF_INIT, BUF_INIT};
    put_target(&cell[4], m, i);
    recon_member(object, "state", &cell[0]);
    if (cell[0].len == 0)
        recon_member(object, "step", &cell[0]);
    recon_member(object, "arch", &cell[1]);
    recon_member(object, "ms", &cell[2]);
    recon_member(object, "message", &cell[3]);
    if (cell[3].len == 0)
        recon_member(object, "path", &cell[3]);
    put_cell(buf_str(&cell[4]), cell[4].len, width);
    printf("%-10s  %-8s  %10s  %s\n", buf_str(&cell[0]), buf_str(&cell[1]), buf_str(&cell[2]),
           buf_str(&cell[3]));
    for (int c = 0; c < 5; c++)
        buf_release(&cell[c]);
}

/* Once for all that failed in the same manner. */
static void print_advice(const struct many *m)
{
    struct buf told BUF_AUTO = BUF_INIT; /* each between line feeds */
    for (size_t i = 0; i < m->targets->n; i++) {
        struct buf line BUF_AUTO = BUF_INIT, target BUF_AUTO = BUF_INIT;
        buf_addc(&line, '\n');
        recon_member(result_of(m, i), "advice", &line);
        buf_addc(&line, '\n');
        if (line.len == 2 || strstr(buf_str(&told), line.data))
            continue;
        buf_add(&told, line.data, line.len);
        put_target(&target, m, i);
        printf("what to do (%s): %.*s\n", buf_str(&target), (int)line.len - 2, line.data + 1);
    }
}

static void print_table(const struct many *m)
{
    if (m->o->quiet && m->failed == 0)
        return;
    size_t width = strlen("target");
    for (size_t i = 0; i < m->targets->n; i++)
        if (strlen(m->targets->list[i].text) > width)
            width = strlen(m->targets->list[i].text);
    if (width > 60)
        width = 60;
    put_cell("target", 6, (int)width);
    printf("%-10s  %-8s  %10s  what\n", "result", "arch", "ms");
    for (size_t i = 0; i < m->targets->n; i++)
        if (!m->o->quiet || failed_of(m, i))
            print_row(m, i, (int)width);
    print_advice(m);
    printf("%zu of %zu done, %zu failed\n", m->done - m->failed, m->targets->n, m->failed);
}

/* ---- the whole ---- */

/* The signals of the terminal have come to the workers as well; one that came to us alone is passed on. */
static void look_at_signals(struct many *m)
{
    int before = m->transport->interrupted;
    transport_signals(m->transport);
    if (before || !m->transport->interrupted)
        return;
    for (int i = 0; i < m->o->jobs; i++)
        if (m->workers[i].fd >= 0)
            kill(m->workers[i].pid, m->transport->interrupted);
}

static bool refill(struct many *m)
{
    bool busy = false;
    for (int i = 0; i < m->o->jobs; i++) {
        struct worker *w = &m->workers[i];
        if (w->fd < 0 && m->next < m->targets->n && !m->transport->interrupted && start_worker(m, w) < 0) {
            applet_failed(m->applet, "cannot start a process: %s", err_text(errno));
            m->worst = EXIT_FAILED;
            m->next = m->targets->n;
        }
        busy = busy || w->fd >= 0;
    }
    return busy;
}

static void wait_some(struct many *m)
{
    int n = m->o->jobs;
    for (int i = 0; i < n; i++)
        m->polled[i] = (struct pollfd){.fd = m->workers[i].fd, .events = POLLIN};
    m->polled[n] = (struct pollfd){.fd = m->transport->signal_fd, .events = POLLIN};
    if (poll(m->polled, (nfds_t)n + 1, m->terminal ? 1000 : -1) == 0)
        show_progress(m);
    if (m->polled[n].revents)
        look_at_signals(m);
    for (int i = 0; i < n; i++) {
        char chunk[4096];
        struct worker *w = &m->workers[i];
        if (!m->polled[i].revents)
            continue;
        ssize_t got = read(w->fd, chunk, sizeof chunk);
        if (got > 0)
            buf_add(&w->result, chunk, (size_t)got);
        else if (got == 0 || errno != EINTR)
            finish_worker(m, w);
    }
}

int inject_many(const struct inject_options *o, const struct target_list *targets,
                struct transport *transport, const char *applet, inject_many_fn one)
{
    struct many m = {.o = o,
                     .targets = targets,
                     .transport = transport,
                     .applet = applet,
                     .one = one,
                     .terminal = isatty(STDERR_FILENO),
                     .began = now_ms()};
    m.workers = mem_zalloc((size_t)o->jobs * sizeof *m.workers);
    m.polled = mem_zalloc(((size_t)o->jobs + 1) * sizeof *m.polled);
    m.results = mem_zalloc((targets->n + 1) * sizeof *m.results);
    for (int i = 0; i < o->jobs; i++)
        m.workers[i].fd = -1;
    fflush(stdout); /* a worker has nothing of ours to write */
    show_progress(&m);
    while (refill(&m))
        wait_some(&m);
    if (m.terminal)
        fputs("\r\033[K", stderr);
    if (!o->json)
        print_table(&m);
    for (size_t i = 0; i < targets->n; i++)
        free(m.results[i]);
    free(m.results);
    free(m.polled);
    free(m.workers);
    if (stdout_flushed() != EXIT_OK && m.worst == EXIT_OK)
        return EXIT_FAILED;
    return transport->interrupted ? EXIT_BY_SIGNAL + transport->interrupted : m.worst;
}
