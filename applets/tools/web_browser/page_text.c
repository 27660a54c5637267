#include "page_text.h"

#include <stdbool.h>
#include <string.h>

#include "utf8.h"

/* A character that isn't one of a line of text: C0 and C1, U+2028 and U+2029, at which many a reader splits.
 */
static bool breaks_lines(const char *s, size_t n)
{
    unsigned char a = (unsigned char)s[0];
    if (n == 1)
        return a < 0x20 || a == 0x7F;
    if (n == 2)
        return a == 0xC2 && (unsigned char)s[1] < 0xA0;
    return n == 3 && memcmp(s, "\xE2\x80", 2) == 0 && (s[2] == '\xA8' || s[2] == '\xA9');
}

enum form { BLOCK, LINE, QUOTED };

/* Appends the character at s (n bytes of it) as the form has it. */
static void put_char(struct buf *out, const char *s, size_t n, enum form form)
{
    if (!breaks_lines(s, n) || (form == BLOCK && (*s == '\n' || *s == '\t')))
        buf_add(out, s, n);
    else if (*s == '\n')
        buf_adds(out, "\\n");
    else if (*s == '\t')
        buf_adds(out, "\\t");
    else
        buf_addc(out, ' ');
}

/* Appends what needs nothing but, where it is quoted, backslashes. */
static void put_run(struct buf *out, const char *s, size_t n, enum form form)
{
    for (size_t i = 0; form == QUOTED && i < n; i++)
        if (s[i] == '"' || s[i] == '\\') {
            buf_add(out, s, i);
            buf_addc(out, '\\');
            s += i;
            n -= i;
            i = 0; /* the quote itself is looked past */
        }
    buf_add(out, s, n);
}

/* Appends what of s has room in `max` bytes; returns how many bytes were taken. */
static size_t put_text(struct buf *out, const char *s, size_t n, size_t max, enum form form)
{
    size_t end = n < max ? n : max, at = 0;
    while (at < end) {
        size_t run = utf8_printable(s + at, end - at);
        if (run > 0) {
            put_run(out, s + at, run, form);
        } else {
            int len = utf8_char(s + at, n - at);
            run = len > 0 ? (size_t)len : 1;
            if (run > end - at)
                break;
            put_char(out, s + at, run, form);
        }
        at += run;
    }
    return at;
}

static void put_bounded(struct buf *out, const char *s, size_t n, size_t max, enum form form)
{
    size_t taken = put_text(out, s, n, max, form);
    if (taken < n)
        buf_addf(out, "... (%zu more characters)", utf8_count(s + taken, n - taken));
}

void page_text_line(struct buf *out, const char *s, size_t n, size_t max)
{
    put_bounded(out, s, n, max, LINE);
}

void page_text_quoted(struct buf *out, const char *s, size_t n, size_t max)
{
    buf_addc(out, '"');
    put_bounded(out, s, n, max, QUOTED);
    buf_addc(out, '"');
}

/* Neither is anything of the line's in it, nor can it be taken for quoted. */
static bool is_word(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)s[i] <= ' ' || s[i] == '"' || s[i] == '\\')
            return false;
    return utf8_printable(s, n) == n;
}

void page_text_word(struct buf *out, const char *s, size_t n, size_t max)
{
    if (n > max || !is_word(s, n))
        page_text_quoted(out, s, n, max);
    else
        buf_add(out, s, n);
}

void page_text_block(struct buf *out, const char *s, size_t n)
{
    put_text(out, s, n, n, BLOCK);
}

static bool is_base64_data(const char *s, size_t n)
{
    if (n < 5 || memcmp(s, "data:", 5) != 0)
        return false;
    const char *comma = memchr(s, ',', n);
    size_t head = comma ? (size_t)(comma - s) : n;
    return memmem(s, head, "base64", 6) != NULL;
}

void page_text_url(struct buf *out, const char *s, size_t n)
{
    if (is_base64_data(s, n))
        buf_adds(out, "data:<base64-data-removed>");
    else
        page_text_word(out, s, n, PAGE_VALUE_MAX);
}
