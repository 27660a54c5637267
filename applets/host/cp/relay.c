#include "host/cp/relay.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "applet.h"
#include "commands/transfer/transfer.h"
#include "host/inject/transport.h"
#include "io.h"
#include "mem.h"

enum { AT_ONCE = 1 << 20, COPY_SIZE = 65536, SHOWN_EACH_MS = 250, LINE_MAX_SAID = 8192, END_MS = 20000 };

/* ---- bytes ---- */

static void end_way(struct way *w)
{
    io_close(&w->from);
    io_close(&w->to);
}

/* Where they can't be spliced. */
static ssize_t copy(const struct way *w)
{
    static char data[COPY_SIZE];
    ssize_t n = read(w->from, data, sizeof data);
    return n > 0 && io_write_all(w->to, data, (size_t)n) < 0 ? -1 : n;
}

static void move(struct way *w)
{
    ssize_t n =
        w->copies ? copy(w) : splice(w->from, NULL, w->to, NULL, AT_ONCE, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
    if (n > 0) {
        w->bytes += n;
        w->waits_room = false;
    } else if (n < 0 && errno == EINVAL && !w->copies) {
        w->copies = true;
    } else if (n < 0 && errno == EAGAIN) {
        struct pollfd p = {.fd = w->from, .events = POLLIN};
        w->waits_room = !w->waits_room && poll(&p, 1, 0) > 0;
    } else if (n == 0 || errno != EINTR) {
        end_way(w); /* who has gone says why */
    }
}

/* ---- what is said ---- */

struct heard {
    int fd;
    struct buf text;
    const struct half *half;
};

static bool take_number(const char *line, const char *what, long long *number)
{
    size_t n = strlen(what);
    bool is = strncmp(line, what, n) == 0;
    if (is)
        *number = strtoll(line + n, NULL, 10);
    return is;
}

static void say(struct relay *r, const struct heard *h, char *line)
{
    static const char own[] = "toolbox transfer: ";
    if (strncmp(line, own, sizeof own - 1) == 0)
        line += sizeof own - 1;
    if (take_number(line, TRANSFER_TOTAL, &r->total) || take_number(line, TRANSFER_SAME, &r->same))
        return;
    struct buf shown BUF_AUTO = BUF_INIT;
    transport_show(&shown, line, strlen(line), LINE_MAX_SAID);
    if (r->shows)
        dprintf(STDERR_FILENO, "\r\033[K");
    applet_failed(r->applet, "%s%s%s", h->half->where, *h->half->where ? ": " : "", buf_str(&shown));
}

/* Whole lines, or what there is at the end. */
static void hear(struct relay *r, struct heard *h, bool report)
{
    char data[4096], *end;
    ssize_t n = read(h->fd, data, sizeof data);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n > 0)
        buf_add(&h->text, data, (size_t)n);
    while (h->text.len > 0 && ((end = memchr(h->text.data, '\n', h->text.len)) != NULL || n <= 0 ||
                               h->text.len > LINE_MAX_SAID)) {
        size_t length = end ? (size_t)(end - h->text.data) : h->text.len;
        char *line MEM_AUTO = mem_dup(h->text.data, length);
        buf_consume(&h->text, end ? length + 1 : length);
        if (report)
            r->said(r->arg, line);
        else
            say(r, h, line);
    }
    if (n <= 0)
        io_close(&h->fd);
}

void relay_put_size(struct buf *out, double bytes)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
    size_t i = 0;
    for (; bytes >= 999.5 && i < 4; i++)
        bytes /= 1000;
    buf_addf(out, i > 0 && bytes < 99.95 ? "%.1f %s" : "%.0f %s", bytes, units[i]);
}

static void show(const struct relay *r, long long begun)
{
    struct buf line BUF_AUTO = BUF_INIT;
    double seconds = (double)(now_ms() - begun) / 1000, done = (double)r->ways[0].bytes;
    double rate = seconds > 0 ? done / seconds : 0;
    buf_adds(&line, "\r\033[K");
    relay_put_size(&line, done);
    if (r->total > 0) {
        buf_adds(&line, " of ");
        relay_put_size(&line, (double)r->total);
    }
    buf_adds(&line, ", ");
    relay_put_size(&line, rate);
    buf_adds(&line, "/s");
    if ((double)r->total > done && rate > 0) {
        long long left = (long long)(((double)r->total - done) / rate) + 1;
        buf_addf(&line, ", %lld:%02lld left", left / 60, left % 60);
    }
    io_write_all(STDERR_FILENO, line.data, line.len);
}

/* ---- the end ---- */

/* One that doesn't end though nothing is open between us is ended. */
static int wait_for(pid_t pid)
{
    int status;
    pid_t ended;
    for (long long until = now_ms() + END_MS; (ended = waitpid(pid, &status, WNOHANG)) == 0; usleep(2000))
        if (now_ms() > until)
            kill(pid, SIGKILL);
    return ended < 0 || WIFSIGNALED(status) ? EXIT_FAILED : WEXITSTATUS(status);
}

/* What there is to be waited for, in the order of pass(). False: nothing any more. */
static bool wait_for_more(const struct relay *r, const struct heard *heard, int n, struct pollfd *p)
{
    bool open = false;
    for (int i = 0; i < WAYS_MAX; i++) {
        const struct way *w = &r->ways[i];
        *p++ = (struct pollfd){.fd = w->waits_room ? w->to : w->from,
                               .events = w->waits_room ? POLLOUT : POLLIN};
        *p++ = (struct pollfd){.fd = w->to}; /* that its reader has gone shows by itself */
        open = open || w->from >= 0;
    }
    for (int i = 0; i < n; i++) {
        *p++ = (struct pollfd){.fd = heard[i].fd, .events = POLLIN};
        open = open || heard[i].fd >= 0;
    }
    nfds_t count = (nfds_t)2 * WAYS_MAX + (nfds_t)n;
    return open && (poll(p - count, count, r->shows ? SHOWN_EACH_MS : -1) >= 0 || errno == EINTR);
}

static void pass(struct relay *r, struct heard *heard, int n, const struct pollfd *p)
{
    for (int i = 0; i < WAYS_MAX; i++, p += 2)
        if (r->ways[i].from >= 0 && p[1].revents)
            end_way(&r->ways[i]);
        else if (r->ways[i].from >= 0 && p[0].revents)
            move(&r->ways[i]);
    for (int i = 0; i < n; i++)
        if (heard[i].fd >= 0 && p[i].revents)
            hear(r, &heard[i], r->reports && i == n - 1);
}

int relay_run(struct relay *r, int statuses[HALVES_MAX])
{
    struct heard heard[HALVES_MAX + 1];
    struct pollfd p[2 * WAYS_MAX + HALVES_MAX + 1] = {0};
    int n = 0, status = EXIT_OK;
    long long begun = now_ms(), shown = begun;
    signal(SIGPIPE, SIG_IGN);
    for (; n < r->n_halves; n++)
        heard[n] = (struct heard){r->halves[n].err, BUF_INIT, &r->halves[n]};
    if (r->reports)
        heard[n++] = (struct heard){r->reports->out, BUF_INIT, r->reports};
    while (wait_for_more(r, heard, n, p)) {
        pass(r, heard, n, p);
        if (r->shows && now_ms() - shown >= SHOWN_EACH_MS) {
            shown = now_ms();
            show(r, begun);
        }
    }
    if (r->shows)
        dprintf(STDERR_FILENO, "\r\033[K");
    for (int i = 0; i < n; i++)
        buf_release(&heard[i].text);
    for (int i = 0; i < r->n_halves; i++) {
        statuses[i] = wait_for(r->halves[i].pid);
        status = statuses[i] > status ? statuses[i] : status;
    }
    return status;
}
