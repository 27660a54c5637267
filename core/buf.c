#include "buf.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mem.h"

#define BUF_FIRST 64

void buf_init(struct buf *b, size_t max)
{
    *b = (struct buf){.max = max};
}

void buf_release(struct buf *b)
{
    free(b->data);
    buf_init(b, b->max);
}

int buf_reserve(struct buf *b, size_t extra)
{
    if (b->len > b->max || extra > b->max - b->len || extra >= SIZE_MAX / 2 - b->len)
        return -1;
    size_t want = b->len + extra + 1; /* the NUL behind */
    if (want <= b->cap)
        return 0;
    size_t cap = b->cap ? b->cap : BUF_FIRST;
    while (cap < want)
        cap *= 2;
    b->data = mem_realloc(b->data, cap);
    b->cap = cap;
    b->data[b->len] = '\0';
    return 0;
}

int buf_add(struct buf *b, const void *data, size_t len)
{
    if (buf_reserve(b, len) < 0)
        return -1;
    if (len > 0)
        memcpy(b->data + b->len, data, len);
    b->len += len;
    b->data[b->len] = '\0';
    return 0;
}

int buf_adds(struct buf *b, const char *s)
{
    return buf_add(b, s, strlen(s));
}

int buf_addc(struct buf *b, char c)
{
    return buf_add(b, &c, 1);
}

int buf_addv(struct buf *b, const char *fmt, va_list ap)
{
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    int result = -1;
    if (n >= 0 && buf_reserve(b, (size_t)n) == 0) {
        vsnprintf(b->data + b->len, (size_t)n + 1, fmt, again);
        b->len += (size_t)n;
        result = 0;
    }
    va_end(again);
    return result;
}

int buf_addf(struct buf *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int result = buf_addv(b, fmt, ap);
    va_end(ap);
    return result;
}

void buf_consume(struct buf *b, size_t n)
{
    if (n >= b->len) {
        buf_truncate(b, 0);
        return;
    }
    if (n == 0) /* moved to where it is, it would be byte by byte */
        return;
    memmove(b->data, b->data + n, b->len - n);
    buf_truncate(b, b->len - n);
}

int buf_replace(struct buf *b, size_t at, size_t n, const void *data, size_t len)
{
    if (buf_reserve(b, len > n ? len - n : 0) < 0)
        return -1;
    if (len != n)
        memmove(b->data + at + len, b->data + at + n, b->len - at - n);
    if (len > 0)
        memcpy(b->data + at, data, len);
    b->len += len - n;
    b->data[b->len] = '\0';
    return 0;
}

void buf_truncate(struct buf *b, size_t len)
{
    if (!b->data || len >= b->len)
        return;
    b->len = len;
    b->data[len] = '\0';
}

const char *buf_str(const struct buf *b)
{
    return b->data ? b->data : "";
}

char *buf_take(struct buf *b, size_t *len)
{
    buf_reserve(b, 0);
    char *data = b->data ? b->data : mem_zalloc(1);
    if (len)
        *len = b->len;
    buf_init(b, b->max);
    return data;
}

void buf_shrink(struct buf *b)
{
    if (b->len == 0) {
        buf_release(b);
    } else if (b->cap / 4 > b->len + 1) {
        b->cap = b->len + 1;
        b->data = mem_realloc(b->data, b->cap);
    }
}
