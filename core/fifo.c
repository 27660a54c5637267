#include "fifo.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io.h"
#include "mem.h"

/* With its head a little less than a power of two, as the allocator likes it; as much as a pipe holds. */
#define CHUNK_SIZE (65536 - 64)

struct fifo_chunk {
    struct fifo_chunk *next;
    size_t begin, end;
    char data[CHUNK_SIZE];
};

static void drop_first(struct fifo *f)
{
    struct fifo_chunk *c = f->first;
    f->first = c->next;
    if (!f->first)
        f->last = NULL;
    free(c);
}

void fifo_release(struct fifo *f)
{
    while (f->first)
        drop_first(f);
    f->len = 0;
}

/* The chunk that the next byte goes into. */
static struct fifo_chunk *open_chunk(struct fifo *f)
{
    if (f->last && f->last->end < CHUNK_SIZE)
        return f->last;
    struct fifo_chunk *c = mem_alloc(sizeof *c);
    c->next = NULL;
    c->begin = c->end = 0;
    *(f->last ? &f->last->next : &f->first) = c;
    f->last = c;
    return c;
}

static void drop_empty(struct fifo *f)
{
    if (f->len == 0)
        fifo_release(f);
}

void fifo_add(struct fifo *f, const void *data, size_t n)
{
    for (const char *at = data; n > 0;) {
        struct fifo_chunk *c = open_chunk(f);
        size_t step = CHUNK_SIZE - c->end < n ? CHUNK_SIZE - c->end : n;
        memcpy(c->data + c->end, at, step);
        c->end += step;
        f->len += step;
        at += step;
        n -= step;
    }
}

ptrdiff_t fifo_read(struct fifo *f, int fd, size_t max)
{
    struct fifo_chunk *c = open_chunk(f);
    size_t room = CHUNK_SIZE - c->end;
    ssize_t n = read(fd, c->data + c->end, room < max ? room : max);
    if (n > 0) {
        c->end += (size_t)n;
        f->len += (size_t)n;
    }
    drop_empty(f);
    return n;
}

ptrdiff_t fifo_write(struct fifo *f, int fd)
{
    struct fifo_chunk *c = f->first;
    ssize_t n = write(fd, c->data + c->begin, c->end - c->begin);
    if (n > 0)
        fifo_drop(f, (size_t)n);
    return n;
}

void fifo_peek(const struct fifo *f, size_t n, struct buf *out)
{
    buf_reserve(out, n);
    for (const struct fifo_chunk *c = f->first; c && n > 0; c = c->next) {
        size_t step = c->end - c->begin < n ? c->end - c->begin : n;
        buf_add(out, c->data + c->begin, step);
        n -= step;
    }
}

void fifo_drop(struct fifo *f, size_t n)
{
    while (n > 0 && f->first) {
        struct fifo_chunk *c = f->first;
        size_t step = c->end - c->begin < n ? c->end - c->begin : n;
        c->begin += step;
        f->len -= step;
        n -= step;
        if (c->begin == c->end)
            drop_first(f);
    }
}

int fifo_copy(const struct fifo *f, int fd)
{
    for (const struct fifo_chunk *c = f->first; c; c = c->next)
        if (io_write_all(fd, c->data + c->begin, c->end - c->begin) < 0)
            return -1;
    return 0;
}
