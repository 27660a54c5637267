/* A job's stdin: kept here until the program takes it. */
#include <errno.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "io.h"
#include "job_internal.h"
#include "job_text.h"

static void on_writable(void *arg, int events)
{
    (void)events;
    job_stdin_flush(arg);
}

/* What is in the pipe when its last reader has gone is lost as well. */
static size_t unread(const struct job *j)
{
    struct pollfd pipe = {.fd = j->in.fd, .events = POLLOUT};
    int n = 0;
    if (j->in.fd < 0 || j->terminal || poll(&pipe, 1, 0) != 1 || !(pipe.revents & POLLERR) ||
        ioctl(j->in.fd, FIONREAD, &n) < 0)
        return 0;
    return n > 0 ? (size_t)n : 0;
}

void job_stdin_drop(struct job *j)
{
    j->record.end.stdin_discarded += unread(j) + j->in.pending.len;
    loop_drop(&j->in.source);
    io_close(&j->in.fd);
    fifo_release(&j->in.pending);
}

/* A source only while something waits: a pipe that nobody reads any more would go on waking us. */
void job_stdin_flush(struct job *j)
{
    struct job_stdin *in = &j->in;
    while (in->fd >= 0 && in->pending.len > 0) {
        ptrdiff_t n = fifo_write(&in->pending, in->fd);
        if (n < 0 && (errno == EAGAIN || errno == ENOMEM)) {
            if (!in->source)
                in->source = loop_fd(j->loop, in->fd, LOOP_WRITE, on_writable, j);
            return;
        }
        if (n < 0 && errno != EINTR)
            job_stdin_drop(j);
    }
    loop_drop(&in->source);
    if (in->closing && !j->terminal)
        io_close(&in->fd);
}

/* Characters up to U+00FF are bytes: one or two of the text's, C2 and C3 in front of the second. */
static int add_latin1(struct fifo *f, const char *data, size_t n)
{
    struct buf bytes BUF_AUTO = BUF_INIT;
    buf_reserve(&bytes, n);
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)data[i];
        if (c > 0xC3)
            return -1;
        if (c >= 0xC2 && ++i < n)
            c = (unsigned char)((c & 3) << 6 | ((unsigned char)data[i] & 0x3F));
        buf_addc(&bytes, (char)c);
    }
    fifo_add(f, bytes.data, bytes.len);
    return 0;
}

int job_stdin_add(struct job *j, const char *data, size_t n)
{
    if (n > 0)
        j->in.open_line = data[n - 1] != '\n';
    if (j->latin1)
        return add_latin1(&j->in.pending, data, n);
    fifo_add(&j->in.pending, data, n);
    return 0;
}

int job_write(struct job *j, const char *data, size_t n, struct err *err)
{
    if (!j->in.ever_open)
        return err_set(err, ERR_TOOL, "stdin of job %ld is not open; start it with stdin_open", (long)j->pid);
    if (j->in.closing)
        return err_set(err, ERR_TOOL, JOB_STDIN_CLOSED, (long)j->pid);
    if (j->in.fd < 0) { /* nobody reads it any more */
        j->record.end.stdin_discarded += text_bytes(data, n, j->latin1);
        return 0;
    }
    size_t most = memory_share(&j->in.share, j->in.pending.len + n, JOB_STDIN_MAX);
    if (n > most || j->in.pending.len > most - n)
        return err_set(err, ERR_TOOL,
                       "job %ld has not read %zu bytes " JOB_STDIN_FULL
                       "; more than %zu MiB are not kept for it",
                       (long)j->pid, j->in.pending.len, most >> 20);
    if (job_stdin_add(j, data, n) < 0)
        return err_set(err, ERR_TOOL, "the data has characters that are not in latin-1");
    job_stdin_flush(j);
    return 0;
}

void job_close_stdin(struct job *j)
{
    if (j->terminal && !j->in.closing && j->in.fd >= 0)
        job_type_end(j);
    j->in.closing = true;
    job_stdin_flush(j);
}
