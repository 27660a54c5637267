/* Base64 (RFC 4648, section 4: with padding, without line breaks). */
#ifndef CORE_BASE64_H
#define CORE_BASE64_H

#include <stdbool.h>
#include <stddef.h>

struct buf;

size_t base64_length(size_t n); /* characters that n bytes become */
void base64_put(struct buf *out, const void *data, size_t n);

/* Appends the bytes that the n characters stand for; false when they are no base64, and then `out` may have a
 * part of them. */
bool base64_get(struct buf *out, const char *s, size_t n);

#endif
