#include "session_record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "buf.h"
#include "io.h"
#include "json.h"
#include "mem.h"

#define PIECE 65536
#define PIECE_MS 250

struct recording {
    struct record_options options; /* with strings of its own */
    int fd;                        /* -1: it has failed */
    long long size, from;          /* from: now_us() that times count from */
    struct buf out;
    struct loop_source *timer;
    char *failure;
};

static void put_head(struct recording *r)
{
    const struct record_options *o = &r->options;
    struct buf *out = &r->out;
    buf_addf(out,
             o->version == 2 ? "{\"version\":2,\"width\":%d,\"height\":%d"
                             : "{\"version\":3,\"term\":{\"cols\":%d,\"rows\":%d",
             o->cols, o->rows);
    if (o->version != 2) {
        json_member_string(out, "type", o->term);
        buf_addc(out, '}');
    }
    json_member_int(out, "timestamp", (long long)time(NULL));
    json_member_string(out, "title", o->title);
    buf_adds(out, ",\"env\":{");
    if (o->version == 2)
        json_member_string(out, "TERM", o->term);
    json_member_string(out, "SHELL", o->shell);
    buf_adds(out, "}}\n");
}

static int open_file(struct recording *r)
{
    r->fd = open(r->options.path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    r->size = 0;
    return r->fd;
}

static void fail(struct recording *r, const char *what)
{
    r->failure = mem_printf("%s: %s", what, err_text(errno));
    buf_release(&r->out);
    io_close(&r->fd);
}

/* What waits goes into the new one, with the times that it has. */
static void rotate(struct recording *r)
{
    char *old MEM_AUTO = mem_printf("%s.1", r->options.path);
    struct buf waiting BUF_AUTO = r->out;
    buf_init(&r->out, BUF_NO_MAX);
    io_close(&r->fd);
    if (rename(r->options.path, old) < 0 || open_file(r) < 0) {
        fail(r, "cannot begin another file");
        return;
    }
    put_head(r);
    buf_add(&r->out, waiting.data, waiting.len);
}

void recording_flush(struct recording *r)
{
    if (r->fd < 0 || r->out.len == 0)
        return;
    if (r->size > 0 && r->size + (long long)r->out.len > r->options.max)
        rotate(r);
    if (r->fd < 0)
        return;
    if (io_write_all(r->fd, r->out.data, r->out.len) < 0) {
        fail(r, "cannot write");
        return;
    }
    r->size += (long long)r->out.len;
    buf_truncate(&r->out, 0);
}

static void on_timer(void *arg)
{
    recording_flush(arg);
}

struct recording *recording_start(struct loop *loop, const struct record_options *options, struct err *err)
{
    struct recording *r = mem_zalloc(sizeof *r);
    r->options = *options;
    buf_init(&r->out, BUF_NO_MAX);
    if (open_file(r) < 0) {
        err_set(err, ERR_TOOL, "cannot record to %s: %s", options->path, err_text(errno));
        free(r);
        return NULL;
    }
    r->options.path = mem_strdup(options->path);
    r->options.title = mem_strdup(options->title);
    r->options.shell = mem_strdup(options->shell);
    r->options.term = mem_strdup(options->term);
    r->from = now_us();
    r->timer = loop_timer(loop, PIECE_MS, on_timer, r);
    put_head(r);
    recording_flush(r);
    return r;
}

void recording_add(struct recording *r, long long now, const char *event, size_t n)
{
    long long t = now - r->from;
    if (r->fd < 0)
        return;
    if (r->options.version != 2) /* there each time counts from the one before */
        r->from = now;
    if (r->out.len == 0)
        loop_timer_set(r->timer, PIECE_MS);
    buf_addf(&r->out, "[%lld.%06lld,", t / 1000000, t % 1000000);
    buf_add(&r->out, event, n);
    if (r->out.len >= PIECE)
        recording_flush(r);
}

void recording_size(struct recording *r, unsigned short rows, unsigned short cols)
{
    r->options.rows = rows;
    r->options.cols = cols;
}

const char *recording_path(const struct recording *r)
{
    return r->options.path;
}

const char *recording_failure(const struct recording *r)
{
    return r->failure;
}

void recording_end(struct recording *r)
{
    recording_flush(r);
    loop_remove(r->timer);
    io_close(&r->fd);
    buf_release(&r->out);
    free((char *)r->options.path);
    free((char *)r->options.title);
    free((char *)r->options.shell);
    free((char *)r->options.term);
    free(r->failure);
    free(r);
}
