#include "utf8.h"

#include <limits.h>
#include <stdint.h>
#include <string.h>

#include "buf.h"

/* Length of a character by its first byte, and the range its second byte must be in
 * (RFC 3629, section 4): what keeps overlong forms and surrogates out. */
static int lead(unsigned char c, unsigned char *low, unsigned char *high)
{
    *low = 0x80;
    *high = 0xBF;
    if (c < 0x80)
        return 1;
    if (c >= 0xC2 && c <= 0xDF)
        return 2;
    if (c >= 0xE0 && c <= 0xEF) {
        if (c == 0xE0)
            *low = 0xA0;
        if (c == 0xED)
            *high = 0x9F;
        return 3;
    }
    if (c >= 0xF0 && c <= 0xF4) {
        if (c == 0xF0)
            *low = 0x90;
        if (c == 0xF4)
            *high = 0x8F;
        return 4;
    }
    return 0;
}

size_t utf8_sequence(const char *s, size_t n, bool *whole)
{
    unsigned char low, high;
    const unsigned char *u = (const unsigned char *)s;
    int want = lead(u[0], &low, &high);
    size_t have = 1;
    if (want > 0) {
        while (have < (size_t)want && have < n && u[have] >= low && u[have] <= high) {
            low = 0x80;
            high = 0xBF;
            have++;
        }
    }
    *whole = want > 0 && have == (size_t)want;
    return have;
}

int utf8_char(const char *s, size_t n)
{
    bool whole;
    size_t have = utf8_sequence(s, n, &whole);
    if (whole)
        return (int)have;
    unsigned char low, high;
    return have == n && lead((unsigned char)s[0], &low, &high) > 0 ? -1 : 0;
}

#define EACH(byte) (0x0101010101010101ULL * (byte))

size_t utf8_printable(const char *s, size_t n)
{
    size_t i = 0;
    for (uint64_t eight; n - i >= sizeof eight; i += sizeof eight) {
        memcpy(&eight, s + i, sizeof eight);
        /* Less 0x20, a byte below that has its top bit set, and one from 0xA0 on; plus 1, one from 0x7F to
         * 0xFE. What is carried to the next byte comes from one of those. */
        if (((eight - EACH(0x20)) | (eight + EACH(1))) & EACH(0x80))
            break;
    }
    while (i < n && s[i] >= 0x20 && s[i] < 0x7F)
        i++;
    return i;
}

size_t utf8_valid_prefix(const char *s, size_t n)
{
    size_t i = 0;
    while (i < n) {
        i += utf8_printable(s + i, n - i);
        if (i == n)
            break;
        if ((unsigned char)s[i] < 0x80) {
            i++;
            continue;
        }
        int len = utf8_char(s + i, n - i);
        if (len <= 0)
            break;
        i += (size_t)len;
    }
    return i;
}

size_t utf8_count(const char *s, size_t n)
{
    size_t count = 0;
    bool whole;
    for (size_t i = 0; i < n; count++)
        i += (unsigned char)s[i] < 0x80 ? 1 : utf8_sequence(s + i, n - i, &whole);
    return count;
}

size_t utf8_clean(struct buf *out, const char *s, size_t n, bool final)
{
    size_t i = 0;
    while (i < n) {
        size_t good = utf8_valid_prefix(s + i, n - i);
        buf_add(out, s + i, good);
        i += good;
        if (i == n)
            break;
        if (!final && utf8_char(s + i, n - i) < 0)
            break;
        bool whole;
        i += utf8_sequence(s + i, n - i, &whole);
        buf_adds(out, UTF8_REPLACEMENT);
    }
    return i;
}

void utf8_put(struct buf *out, unsigned c)
{
    if (c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF)) {
        buf_adds(out, UTF8_REPLACEMENT);
    } else if (c < 0x80) {
        buf_addc(out, (char)c);
    } else if (c < 0x800) {
        buf_addc(out, (char)(0xC0 | c >> 6));
        buf_addc(out, (char)(0x80 | (c & 0x3F)));
    } else if (c < 0x10000) {
        buf_addc(out, (char)(0xE0 | c >> 12));
        buf_addc(out, (char)(0x80 | (c >> 6 & 0x3F)));
        buf_addc(out, (char)(0x80 | (c & 0x3F)));
    } else {
        buf_addc(out, (char)(0xF0 | c >> 18));
        buf_addc(out, (char)(0x80 | (c >> 12 & 0x3F)));
        buf_addc(out, (char)(0x80 | (c >> 6 & 0x3F)));
        buf_addc(out, (char)(0x80 | (c & 0x3F)));
    }
}

unsigned utf8_code_point(const char *s, int n)
{
    static const unsigned char lead[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
    unsigned code_point = (unsigned char)s[0] & lead[n];
    for (int i = 1; i < n; i++)
        code_point = code_point << 6 | ((unsigned char)s[i] & 0x3F);
    return code_point;
}

/* As the East Asian Width (W and F) and the combining marks of Unicode have it, by their blocks: libc's
 * tables are exact, and forty times as long. */
static size_t columns_of(unsigned c)
{
    static const struct {
        unsigned first, last, columns;
    } blocks[] = {
        {0x300, 0x36F, 0},     {0x483, 0x489, 0},     {0x591, 0x5BD, 0},     {0x610, 0x61A, 0},
        {0x64B, 0x65F, 0},     {0x1100, 0x115F, 2},   {0x1AB0, 0x1AFF, 0},   {0x1DC0, 0x1DFF, 0},
        {0x200B, 0x200F, 0},   {0x202A, 0x202E, 0},   {0x2060, 0x2064, 0},   {0x20D0, 0x20FF, 0},
        {0x2E80, 0x303E, 2},   {0x3041, 0xA4CF, 2},   {0xA960, 0xA97F, 2},   {0xAC00, 0xD7A3, 2},
        {0xF900, 0xFAFF, 2},   {0xFE00, 0xFE0F, 0},   {0xFE20, 0xFE2F, 0},   {0xFE30, 0xFE6F, 2},
        {0xFF00, 0xFF60, 2},   {0xFFE0, 0xFFE6, 2},   {0x1F300, 0x1F64F, 2}, {0x1F680, 0x1F6FF, 2},
        {0x1F900, 0x1FAFF, 2}, {0x20000, 0x3FFFD, 2}, {0xE0100, 0xE01EF, 0},
    };
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        if (c >= blocks[i].first && c <= blocks[i].last)
            return blocks[i].columns;
    return 1;
}

size_t utf8_columns(const char *s, size_t n)
{
    size_t columns = 0, step;
    for (size_t at = 0; at < n; at += step) {
        bool whole;
        step = utf8_sequence(s + at, n - at, &whole);
        columns += whole ? columns_of(utf8_code_point(s + at, (int)step)) : 1;
    }
    return columns;
}

/* Unicode's Bidi_Control (UAX #9), and the line and paragraph separators. */
static bool turns(unsigned c)
{
    return c == 0x61C || c == 0x200E || c == 0x200F || (c >= 0x2028 && c <= 0x202E) ||
           (c >= 0x2066 && c <= 0x2069);
}

void utf8_make_line(struct buf *text, size_t from)
{
    size_t step;
    for (size_t at = from; at < text->len; at += step) {
        bool whole;
        step = utf8_sequence(text->data + at, text->len - at, &whole);
        unsigned c = whole ? utf8_code_point(text->data + at, (int)step) : UINT_MAX;
        if (c < ' ' || (c >= 0x7F && c < 0xA0) || turns(c))
            memset(text->data + at, ' ', step);
    }
}
