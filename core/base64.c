#include "base64.h"

#include <string.h>

#include "buf.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

size_t base64_length(size_t n)
{
    return (n + 2) / 3 * 4;
}

void base64_put(struct buf *out, const void *data, size_t n)
{
    const unsigned char *bytes = data;
    buf_reserve(out, base64_length(n));
    for (size_t i = 0; i < n; i += 3) {
        size_t left = n - i;
        unsigned group =
            bytes[i] * 65536u + (left > 1 ? bytes[i + 1] * 256u : 0) + (left > 2 ? bytes[i + 2] : 0);
        char four[4] = {digits[group >> 18], digits[group >> 12 & 63],
                        left > 1 ? digits[group >> 6 & 63] : '=', left > 2 ? digits[group & 63] : '='};
        buf_add(out, four, 4);
    }
}

/* 64: no digit. */
static unsigned value_of(char c)
{
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (unsigned)(at - digits) : 64;
}

bool base64_get(struct buf *out, const char *s, size_t n)
{
    if (n % 4 != 0)
        return false;
    for (size_t i = 0; i < n; i += 4) {
        bool last = i + 4 == n;
        unsigned pad = !last || s[i + 3] != '=' ? 0 : s[i + 2] != '=' ? 1 : 2;
        unsigned group = 0;
        for (unsigned k = 0; k < 4; k++) {
            unsigned value = k >= 4 - pad ? 0 : value_of(s[i + k]);
            if (value > 63)
                return false;
            group = group << 6 | value;
        }
        if (group & ((1u << 8 * pad) - 1))
            return false; /* bits that no byte has */
        char three[3] = {(char)(group >> 16), (char)(group >> 8), (char)group};
        buf_add(out, three, 3 - pad);
    }
    return true;
}
