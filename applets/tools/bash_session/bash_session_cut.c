#include "bash_session_cut.h"

#include <string.h>

#include "utf8.h"

/* Moves n bytes from what is not shown yet. */
static void show(struct cut *c, size_t n, struct buf *out)
{
    if (n == 0)
        return;
    c->last = c->tail.data[n - 1];
    c->head += n;
    buf_add(out, c->tail.data, n);
    buf_consume(&c->tail, n);
}

/* Whole lines, as long as there is room for them. */
static void show_head(struct cut *c, struct buf *out)
{
    size_t room = c->head_max - c->head, lines = room < c->tail.len ? room : c->tail.len;
    const char *last = lines > 0 ? memrchr(c->tail.data, '\n', lines) : NULL;
    if (last)
        show(c, (size_t)(last - c->tail.data) + 1, out);
    c->closed = c->tail.len > c->head_max - c->head;
    if (c->closed && c->head == 0) /* there is no end of a line in it */
        show(c, utf8_valid_prefix(c->tail.data, c->head_max), out);
}

/* Leaves the last lines. */
static void trim(struct cut *c)
{
    if (c->tail.len <= c->tail_max)
        return;
    size_t drop = c->tail.len - c->tail_max;
    const char *end = memchr(c->tail.data + drop - 1, '\n', c->tail.len - drop + 1);
    if (end && (size_t)(end - c->tail.data) + 1 < c->tail.len)
        drop = (size_t)(end - c->tail.data) + 1;
    while (drop < c->tail.len && (c->tail.data[drop] & 0xC0) == 0x80)
        drop++;
    c->left_out += drop;
    buf_consume(&c->tail, drop);
}

void cut_feed(struct cut *c, const char *data, size_t n, struct buf *out)
{
    buf_add(&c->tail, data, n);
    /* All of it may fit in the end: until it is known that it doesn't, only the head is shown. */
    if (!c->closed)
        show_head(c, out);
    if (c->closed)
        trim(c);
}

void cut_end(struct cut *c, struct buf *out)
{
    if (c->left_out > 0)
        buf_addf(out, "%s[%llu bytes left out]\n", c->head > 0 && c->last != '\n' ? "\n" : "", c->left_out);
    buf_add(out, c->tail.data, c->tail.len);
}

void cut_release(struct cut *c)
{
    buf_release(&c->tail);
}
