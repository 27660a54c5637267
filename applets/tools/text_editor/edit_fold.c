#include "edit_fold.h"

#include <string.h>

#include "edit_text.h"
#include "utf8.h"

bool fold_is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\f' || c == '\v';
}

static bool is_combining(unsigned c)
{
    return c >= 0x300 && c < 0x370;
}

static bool is_unseen(unsigned c)
{
    return (c >= 0x200B && c <= 0x200F) || c == 0x2060 || c == 0xFEFF || c == 0xAD;
}

static bool is_blank(unsigned c)
{
    return c == 0xA0 || (c >= 0x2000 && c <= 0x200A) || c == 0x202F || c == 0x205F || c == 0x3000;
}

/* What a character looks like in ASCII; 0: like nothing there. */
static char lookalike(unsigned c)
{
    static const char latin[] = /* from U+00C0 */
        "AAAAAA\0CEEEEIIII\0NOOOOO\0\0UUUUY\0\0aaaaaa\0ceeeeiiii\0nooooo\0\0uuuuy\0y"
        "AaAaAaCcCcCcCcDd\0\0EeEeEeEeEeGgGgGgGgHh\0\0IiIiIiIiI\0\0\0JjKk\0LlLlLl\0\0\0\0NnNnNn\0\0\0"
        "OoOoOo\0\0RrRrRrSsSsSsSsTtTt\0\0UuUuUuUuUuUuWwYyYZzZzZz\0";
    if (c >= 0xC0 && c < 0xC0 + sizeof latin - 1)
        return latin[c - 0xC0];
    if ((c >= 0x2010 && c <= 0x2015) || c == 0x2212)
        return '-';
    if (c >= 0x2018 && c <= 0x201B)
        return '\'';
    if ((c >= 0x201C && c <= 0x201F) || c == 0xAB || c == 0xBB)
        return '"';
    return is_blank(c) ? ' ' : 0;
}

/* The character at s, of n > 0 bytes: its length, and in `to` what stands for it; *len: of that. */
static size_t fold_char(const char *s, size_t n, int fold, char to[4], size_t *len)
{
    int got = (unsigned char)*s < 0x80 ? 1 : utf8_char(s, n);
    size_t taken = got > 0 ? (size_t)got : 1;
    unsigned c = taken > 1 ? utf8_code_point(s, got) : 0;
    memcpy(to, s, taken);
    *len = taken;
    if (c > 0 &&
        (((fold & FOLD_LOOKS) && (is_combining(c) || is_unseen(c))) || ((fold & FOLD_SPACE) && is_blank(c))))
        *len = 0;
    else if (c > 0 && (fold & FOLD_LOOKS) && lookalike(c))
        *to = lookalike(c), *len = 1;
    if (*len == 1 && (((fold & FOLD_SPACE) && fold_is_space(*to)) || ((fold & FOLD_CR) && *to == '\r')))
        *len = 0;
    if (*len == 1 && (fold & FOLD_CASE) && *to >= 'A' && *to <= 'Z')
        *to = (char)(*to + 32);
    return taken;
}

/* Where the character begins of which byte number `at` of the folded text comes, and where it ends. */
static void unfold(const char *s, size_t n, size_t at, int fold, size_t *begin, size_t *end)
{
    char to[4];
    size_t done = 0, len;
    for (size_t i = 0; i < n; i = *end) {
        *begin = i;
        *end = i + fold_char(s + i, n - i, fold, to, &len);
        done += len;
        if (done > at)
            return;
    }
}

static void fold_into(struct buf *out, const char *s, size_t n, int fold)
{
    char to[4];
    size_t len;
    buf_reserve(out, n);
    for (size_t i = 0; i < n;) {
        i += fold_char(s + i, n - i, fold, to, &len);
        memcpy(out->data + out->len, to, len);
        out->len += len;
    }
}

bool fold_find(const char *data, size_t n, const char *old, size_t n_old, int fold, size_t *begin,
               size_t *end)
{
    struct buf text BUF_AUTO = BUF_INIT;
    struct buf wanted BUF_AUTO = BUF_INIT;
    char to[4];
    size_t len, next, unused;
    fold_into(&wanted, old, n_old, fold);
    if (wanted.len == 0)
        return false;
    fold_into(&text, data, n, fold);
    const char *found = memmem(buf_str(&text), text.len, wanted.data, wanted.len);
    if (!found)
        return false;
    size_t at = (size_t)(found - text.data);
    unfold(data, n, at, fold, begin, &unused);
    unfold(data, n, at + wanted.len - 1, fold, &unused, end);
    while ((fold & FOLD_LOOKS) && *end < n &&
           (next = fold_char(data + *end, n - *end, FOLD_LOOKS, to, &len)) > 0 && len == 0)
        *end += next; /* what belongs to the last character */
    return true;
}

bool fold_equal(const char *a, size_t n_a, const char *b, size_t n_b, int fold)
{
    char to[2][4];
    size_t at[2] = {0, 0}, len[2] = {0, 0}, used[2] = {0, 0};
    const char *s[2] = {a, b};
    const size_t n[2] = {n_a, n_b};
    for (;;) {
        for (int i = 0; i < 2; i++)
            while (used[i] == len[i] && at[i] < n[i]) {
                at[i] += fold_char(s[i] + at[i], n[i] - at[i], fold, to[i], &len[i]);
                used[i] = 0;
            }
        bool left[2] = {used[0] < len[0], used[1] < len[1]};
        if (!left[0] || !left[1])
            return left[0] == left[1];
        if (to[0][used[0]++] != to[1][used[1]++])
            return false;
    }
}

size_t fold_difference(const char *theirs, size_t n_theirs, const char *old, size_t n_old)
{
    size_t at = text_common_prefix(theirs, old, n_theirs < n_old ? n_theirs : n_old);
    while (at > 0 &&
           ((at < n_theirs && (theirs[at] & 0xC0) == 0x80) || (at < n_old && (old[at] & 0xC0) == 0x80)))
        at--;
    return at;
}

static void put_character(struct buf *out, const char *s, size_t n)
{
    static const struct {
        char c;
        const char *name;
    } names[] = {{' ', "a space"}, {'\t', "a tab"}, {'\n', "a line end"}, {'\r', "a CR"}};
    int len = n > 0 ? utf8_char(s, n) : 0;
    unsigned c = len > 0 ? utf8_code_point(s, len) : 0, next = 0;
    for (size_t i = 0; n > 0 && i < sizeof names / sizeof *names; i++)
        if (*s == names[i].c) {
            buf_adds(out, names[i].name);
            return;
        }
    if (len <= 0 || c < 0x20) {
        buf_adds(out, n == 0 ? "nothing more" : "a byte that is no text");
        return;
    }
    int behind = (size_t)len < n ? utf8_char(s + len, n - (size_t)len) : 0;
    if (behind > 0)
        next = utf8_code_point(s + len, behind);
    buf_adds(out, is_blank(c)    ? c == 0xA0 ? "a no-break space" : "a special space"
                  : is_unseen(c) ? "a character that can't be seen"
                                 : "'");
    if (!is_blank(c) && !is_unseen(c))
        buf_addf(out, "%.*s'", len + (is_combining(next) ? behind : 0), s);
    if (c >= 0x80)
        buf_addf(out, " (U+%04X)", c);
    if (is_combining(next))
        buf_addf(out, " with an accent behind it (U+%04X)", next);
}

/* Blanks up to the end of the line, of which there is at least one. */
static bool ends_in_blanks(const char *s, size_t n)
{
    size_t i = 0;
    while (i < n && (s[i] == ' ' || s[i] == '\t'))
        i++;
    return i > 0 && (i == n || s[i] == '\n' || s[i] == '\r');
}

void fold_put_difference(struct buf *out, const char *theirs, size_t n_theirs, const char *old, size_t n_old,
                         const char *what)
{
    size_t at = fold_difference(theirs, n_theirs, old, n_old);
    if (ends_in_blanks(theirs + at, n_theirs - at) != ends_in_blanks(old + at, n_old - at)) {
        bool ours = ends_in_blanks(old + at, n_old - at);
        buf_addf(out, "%sblanks at the end of the line, where %s has %s", ours ? "no " : "", what,
                 ours ? "some" : "none");
        return;
    }
    put_character(out, theirs + at, n_theirs - at);
    buf_addf(out, " where %s has ", what);
    put_character(out, old + at, n_old - at);
}
