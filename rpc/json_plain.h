/* Looking at the text of JSON strings eight bytes at a time. */
#ifndef RPC_JSON_PLAIN_H
#define RPC_JSON_PLAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* True when one of eight bytes is below a byte (at most 0x80): the top bit of such a byte shows. */
#define JSON_EACH(byte) (0x0101010101010101ULL * (byte))
#define JSON_BELOW(eight, byte) (((eight)-JSON_EACH(byte)) & ~(eight)&JSON_EACH(0x80))

/* Bytes at the front that stand for themselves in a string: no quote, no backslash, no control character;
 * with `ascii` no byte above 0x7F either. */
static inline size_t json_plain_run(const char *s, size_t n, bool ascii)
{
    const uint64_t high = ascii ? JSON_EACH(0x80) : 0;
    size_t i = 0;
    for (uint64_t eight; n - i >= sizeof eight; i += sizeof eight) {
        memcpy(&eight, s + i, sizeof eight);
        if (JSON_BELOW(eight, 0x20) | JSON_BELOW(eight ^ JSON_EACH('"'), 1) |
            JSON_BELOW(eight ^ JSON_EACH('\\'), 1) | (eight & high))
            break;
    }
    for (unsigned char c; i < n; i++) {
        c = (unsigned char)s[i];
        if (c < 0x20 || c == '"' || c == '\\' || (ascii && c > 0x7F))
            break;
    }
    return i;
}

#endif
