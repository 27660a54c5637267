/* UTF-8 as RFC 3629 has it: no surrogates, no overlong forms, nothing above U+10FFFF. */
#ifndef CORE_UTF8_H
#define CORE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

struct buf;

#define UTF8_REPLACEMENT "\xEF\xBF\xBD" /* U+FFFD */

/* Length (1 to 4) of the valid character at s; 0 when the bytes are no start of any character;
 * -1 when they are a proper prefix of one that n bytes cut short. n > 0. */
int utf8_char(const char *s, size_t n);

/* What a valid character of n bytes (as utf8_char says) is in Unicode. */
unsigned utf8_code_point(const char *s, int n);

/* Bytes at s that belong together: a whole character (*whole), or the longest prefix of one, which is what
 * one U+FFFD stands for. At least 1; n > 0. */
size_t utf8_sequence(const char *s, size_t n, bool *whole);

/* Bytes of the longest valid prefix; n when all of it is valid. */
size_t utf8_valid_prefix(const char *s, size_t n);

static inline bool utf8_is_valid(const char *s, size_t n)
{
    return utf8_valid_prefix(s, n) == n;
}

/* Bytes at the front that are from 0x20 to 0x7E, found eight at a time. */
size_t utf8_printable(const char *s, size_t n);

/* Number of characters; an undecodable sequence counts as the one U+FFFD it is shown as. */
size_t utf8_count(const char *s, size_t n);

/* Columns that it takes on a terminal: characters of East Asia take two, combining ones none. */
size_t utf8_columns(const char *s, size_t n);

/* Appends s with what is undecodable replaced: one U+FFFD for each maximal prefix of a character
 * (Unicode's recommended practice, and what Python's "replace" does). Returns the bytes taken: less
 * than n only when `final` is false and s ends inside a character, whose bytes (at most 3) the
 * caller brings again with those that follow. */
size_t utf8_clean(struct buf *out, const char *s, size_t n, bool final);

/* Makes what lies behind `from` fit for one line of a terminal, byte for byte as long: control characters
 * become blanks, and so do those that turn the direction of what follows, which would be read as something
 * else. */
void utf8_make_line(struct buf *text, size_t from);

/* Appends one code point (surrogates and values above U+10FFFF as U+FFFD). */
void utf8_put(struct buf *out, unsigned code_point);

#endif
