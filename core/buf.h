/* A growable, binary-safe byte buffer.
 *
 * `max` bounds the length; it is mandatory for what a peer fills and BUF_NO_MAX otherwise. Growth is
 * by doubling, so appending n bytes costs O(n). The bytes are always followed by a NUL that is not
 * counted, so `data` of a non-empty buffer is usable as a C string where it holds no NUL.
 * Running out of memory is the one failure that is not reported: see mem.h. Owned by whoever
 * embeds it: buf_init (or = BUF_INIT) and buf_release. */
#ifndef CORE_BUF_H
#define CORE_BUF_H

#include <stdarg.h>
#include <stddef.h>

#define BUF_NO_MAX ((size_t)-1)

struct buf {
    char *data; /* NULL while nothing was ever appended */
    size_t len;
    size_t cap;
    size_t max;
};

#define BUF_INIT                                                                                             \
    {                                                                                                        \
        .max = BUF_NO_MAX                                                                                    \
    }

void buf_init(struct buf *b, size_t max);
void buf_release(struct buf *b); /* frees; the buffer is usable again, with the same max */

/* Makes room for `extra` more bytes. -1 and nothing changed when that would pass max. */
int buf_reserve(struct buf *b, size_t extra);

/* All of these return 0, or -1 with the buffer unchanged when it would grow past max. */
int buf_add(struct buf *b, const void *data, size_t len);
int buf_adds(struct buf *b, const char *s);
int buf_addc(struct buf *b, char c);
int buf_addf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int buf_addv(struct buf *b, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));

void buf_consume(struct buf *b, size_t n); /* drops the first n bytes */
/* Puts other bytes in the place of n bytes at `at` (all within the buffer); as the above. */
int buf_replace(struct buf *b, size_t at, size_t n, const void *data, size_t len);
void buf_truncate(struct buf *b, size_t len);
const char *buf_str(const struct buf *b); /* never NULL: "" when nothing was appended */

/* Gives the bytes to the caller (free() them; never NULL); the buffer is empty afterwards. */
char *buf_take(struct buf *b, size_t *len);

/* Gives memory back when the buffer uses much less than it holds. */
void buf_shrink(struct buf *b);

/* __attribute__((cleanup)) helpers: struct buf b BUF_AUTO = BUF_INIT; */
#define BUF_AUTO __attribute__((cleanup(buf_release)))

#endif
