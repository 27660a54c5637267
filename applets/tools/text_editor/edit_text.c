#include "edit_text.h"

#include <stdint.h>
#include <string.h>

#define EVERY_BYTE(x) (0x0101010101010101ULL * (x))

static uint64_t word_at(const void *s)
{
    uint64_t w;
    memcpy(&w, s, sizeof w);
    return w;
}

size_t text_count_lf(const char *s, size_t n)
{
    size_t count = 0, i = 0;
    /* Eight bytes at a time: files of a hundred megabytes are counted through for a view. */
    for (; i + 8 <= n; i += 8) {
        uint64_t x = word_at(s + i) ^ EVERY_BYTE('\n');
        uint64_t other =
            ((x & EVERY_BYTE(0x7F)) + EVERY_BYTE(0x7F)) | x; /* top bit of each byte that isn't 0 */
        count += (size_t)((((~other >> 7) & EVERY_BYTE(1)) * EVERY_BYTE(1)) >> 56);
    }
    for (; i < n; i++)
        count += s[i] == '\n';
    return count;
}

size_t text_line_back(const char *s, size_t at, size_t lines)
{
    for (;;) {
        const char *lf = at > 0 ? memrchr(s, '\n', at) : NULL;
        if (!lf)
            return 0;
        if (lines-- == 0)
            return (size_t)(lf - s) + 1;
        at = (size_t)(lf - s);
    }
}

bool text_is_crlf(const char *s, size_t n)
{
    bool any = false;
    for (const char *at = s; (at = memchr(at, '\n', n - (size_t)(at - s))) != NULL; at++) {
        if (at == s || at[-1] != '\r')
            return false;
        any = true;
    }
    return any;
}

size_t text_common_prefix(const char *a, const char *b, size_t n)
{
    size_t i = 0;
    while (i + 8 <= n && word_at(a + i) == word_at(b + i))
        i += 8;
    while (i < n && a[i] == b[i])
        i++;
    return i;
}

size_t text_common_suffix(const char *a_end, const char *b_end, size_t n)
{
    size_t i = 0;
    while (i + 8 <= n && word_at(a_end - i - 8) == word_at(b_end - i - 8))
        i += 8;
    while (i < n && a_end[-1 - (ptrdiff_t)i] == b_end[-1 - (ptrdiff_t)i])
        i++;
    return i;
}
