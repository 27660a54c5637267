#include "edit_hint.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "buf.h"
#include "edit_fold.h"
#include "edit_text.h"
#include "utf8.h"

enum {
    LOOK_MAX = 8 << 20,  /* bytes of a file that are looked through for what is near */
    QUOTE_MAX = 400,     /* bytes of the file's own text that are quoted */
    LINE_ALIKE_MAX = 400 /* bytes of a line that are compared */
};

/* The file's own text as a string of JSON, so that tabs and line ends can be seen and taken over. */
static void quote(struct buf *out, const char *s, size_t n)
{
    static const char names[] = "btn\0fr"; /* 8 to 13 */
    size_t end = out->len + QUOTE_MAX;
    struct buf clean BUF_AUTO = BUF_INIT;
    utf8_clean(&clean, s, n < QUOTE_MAX ? n : QUOTE_MAX, true);
    buf_addc(out, '"');
    for (size_t i = 0; i < clean.len; i++) {
        unsigned char c = (unsigned char)clean.data[i];
        if (out->len >= end && (c & 0xC0) != 0x80)
            break; /* where a character begins */
        if (c >= 8 && c <= 13 && c != 11)
            buf_addf(out, "\\%c", names[c - 8]);
        else if (c == '"' || c == '\\')
            buf_addf(out, "\\%c", c);
        else if (c < 0x20)
            buf_addf(out, "\\u%04x", c);
        else
            buf_addc(out, (char)c);
    }
    buf_adds(out, n > QUOTE_MAX || out->len >= end ? "…\"" : "\"");
}

static void put_lines(struct buf *out, size_t first, size_t last)
{
    if (first == last)
        buf_addf(out, "line %zu", first);
    else
        buf_addf(out, "lines %zu-%zu", first, last);
}

/* White space around [*begin, *end) in its own lines belongs to what differs. */
static void widen(const char *data, size_t n, size_t *begin, size_t *end, bool whole_line)
{
    while (*begin > 0 && fold_is_space(data[*begin - 1]) && data[*begin - 1] != '\n')
        --*begin;
    while (*end < n && fold_is_space(data[*end]) && data[*end] != '\n')
        ++*end;
    if (whole_line && *end < n && data[*end] == '\n')
        ++*end;
}

/* Which character it is, and in which line. */
static void put_first_difference(struct buf *out, const char *data, size_t begin, size_t end, const char *old,
                                 size_t n_old, const char *what)
{
    while (begin < end && n_old > 0 && *old != data[begin] && (data[begin] == ' ' || data[begin] == '\t') &&
           *old != ' ' && *old != '\t')
        begin++; /* in front of it, where it was widened */
    size_t at = begin + fold_difference(data + begin, end - begin, old, n_old);
    buf_addf(out, ". The first difference, in line %zu: ", 1 + text_count_lf(data, at));
    fold_put_difference(out, data + begin, end - begin, old, n_old, what);
}

static bool hint_folded(struct buf *out, const char *data, size_t n, const char *old, size_t n_old,
                        const char *what)
{
    static const struct {
        int fold;
        const char *what;
    } tries[] = {{FOLD_CR, "line ends"},
                 {FOLD_SPACE, "white space"},
                 {FOLD_LOOKS, "characters that look alike"},
                 {FOLD_SPACE | FOLD_LOOKS, "white space and characters that look alike"},
                 {FOLD_CASE, "upper and lower case"},
                 {FOLD_SPACE | FOLD_CASE, "white space and in upper and lower case"}};
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
        size_t begin, end;
        if (!fold_find(data, n, old, n_old, tries[i].fold, &begin, &end))
            continue;
        size_t first = 1 + text_count_lf(data, begin),
               last = first + text_count_lf(data + begin, end - begin);
        if (tries[i].fold & FOLD_SPACE)
            widen(data, n, &begin, &end, old[n_old - 1] == '\n');
        buf_addf(out, "The text in ");
        put_lines(out, first, last);
        buf_addf(out, " differs from it only in %s; there it is (as a JSON string): ", tries[i].what);
        quote(out, data + begin, end - begin);
        buf_addf(out, ", and %s is ", what);
        quote(out, old, n_old);
        put_first_difference(out, data, begin, end, old, n_old, what);
        return true;
    }
    return false;
}

/* The text with the escapes of a JSON string, or of most languages, taken for what they mean. */
static void unescape(struct buf *out, const char *s, size_t n)
{
    static const char letters[] = "ntr\"'\\/", meaning[] = "\n\t\r\"'\\/";
    for (size_t i = 0; i < n; i++) {
        const char *letter = s[i] == '\\' && i + 1 < n ? memchr(letters, s[i + 1], sizeof letters - 1) : NULL;
        buf_addc(out, letter ? meaning[letter - letters] : s[i]);
        i += letter != NULL;
    }
}

/* A model that escapes twice. */
static bool hint_escaped(struct buf *out, const char *data, size_t n, const char *old, size_t n_old)
{
    struct buf plain BUF_AUTO = BUF_INIT;
    unescape(&plain, old, n_old);
    const char *found = plain.len < n_old ? memmem(data, n, plain.data, plain.len) : NULL;
    if (!found)
        return false;
    size_t first = 1 + text_count_lf(data, (size_t)(found - data));
    buf_adds(out, "It seems to be escaped once too often: what its backslashes stand for is in ");
    put_lines(out, first, first + text_count_lf(found, plain.len));
    buf_adds(out, "; give line ends, tabs and quotes themselves (new_str as well)");
    return true;
}

/* A model that copies from a numbered view: every line begins with a number and a tab. */
static bool has_line_numbers(const char *old, size_t n_old)
{
    const char *at = old, *end = old + n_old;
    while (at < end) {
        const char *lf = memchr(at, '\n', (size_t)(end - at));
        const char *stop = lf ? lf : end;
        const char *c = at;
        while (c < stop && *c == ' ')
            c++;
        const char *digits = c;
        while (c < stop && isdigit((unsigned char)*c))
            c++;
        if (c == digits || c == stop || *c != '\t')
            return false;
        at = stop + 1;
    }
    return true;
}

struct line {
    const char *s;
    size_t n;
};

static struct line trimmed(const char *s, size_t n)
{
    while (n > 0 && fold_is_space(s[0])) {
        s++;
        n--;
    }
    while (n > 0 && fold_is_space(s[n - 1]))
        n--;
    return (struct line){s, n < LINE_ALIKE_MAX ? n : LINE_ALIKE_MAX};
}

/* The longest line of old_str, by which the place is looked for. *index: its number, from 0. */
static struct line anchor_of(const char *old, size_t n_old, size_t *index, size_t *n_lines)
{
    struct line best = {0};
    const char *at = old, *end = old + n_old;
    size_t i = 0;
    for (;; i++) {
        const char *lf = memchr(at, '\n', (size_t)(end - at));
        struct line line = trimmed(at, (size_t)((lf ? lf : end) - at));
        if (line.n > best.n) {
            best = line;
            *index = i;
        }
        if (!lf || lf + 1 == end)
            break;
        at = lf + 1;
    }
    *n_lines = i + 1;
    return best;
}

static unsigned pair_of(const char *s)
{
    return ((unsigned char)s[0] * 31u + (unsigned char)s[1]) & 1023;
}

enum { ALIKE_MIN = 500 };

/* How much of a is in b, and how little else, in thousandths: by the pairs of neighbouring bytes that they
 * have in common, their share of a's pairs counting twice, that of all pairs (Dice's coefficient) once.
 * `pairs`: a's, counted; the same again in the end. */
static unsigned alike(int16_t *pairs, size_t n_a, struct line b)
{
    unsigned common = 0;
    /* Length alone rules many lines out. */
    if (n_a < 2 || b.n < 2 || 1000 * b.n / n_a < ALIKE_MIN)
        return 0;
    for (size_t i = 0; i + 1 < b.n; i++)
        common += pairs[pair_of(b.s + i)]-- > 0;
    for (size_t i = 0; i + 1 < b.n; i++)
        pairs[pair_of(b.s + i)]++;
    size_t in_a = n_a - 1, in_all = n_a - 1 + b.n - 1;
    return (unsigned)((2000UL * common / in_a + 2000UL * common / in_all) / 3);
}

static bool hint_alike(struct buf *out, const char *data, size_t n, const char *old, size_t n_old)
{
    int16_t pairs[1024] = {0};
    size_t index = 0, n_lines = 1, line = 1, best_line = 0;
    unsigned best = 0;
    struct line anchor = anchor_of(old, n_old, &index, &n_lines);
    for (size_t i = 0; i + 1 < anchor.n; i++)
        pairs[pair_of(anchor.s + i)]++;
    const char *at = data, *end = data + n, *begin = data;
    for (;; line++) {
        const char *lf = memchr(at, '\n', (size_t)(end - at));
        unsigned score = alike(pairs, anchor.n, trimmed(at, (size_t)((lf ? lf : end) - at)));
        if (score > best) {
            best = score;
            best_line = line;
            begin = at;
        }
        if (!lf)
            break;
        at = lf + 1;
    }
    if (best < ALIKE_MIN)
        return false;
    size_t start =
        text_line_back(data, (size_t)(begin - data), index < best_line - 1 ? index : best_line - 1);
    size_t first = best_line - text_count_lf(data + start, (size_t)(begin - data) - start);
    const char *stop = data + start;
    size_t last = first - 1;
    for (size_t i = 0; i < n_lines && stop < end; i++, last++) {
        const char *lf = memchr(stop, '\n', (size_t)(end - stop));
        stop = lf ? lf + 1 : end;
    }
    buf_addf(out, "What comes closest is in ");
    put_lines(out, first, last);
    buf_adds(out, " (as a JSON string): ");
    size_t len = (size_t)(stop - (data + start));
    quote(out, data + start, len > 0 && data[start + len - 1] == '\n' ? len - 1 : len);
    return true;
}

void edit_put_hint(struct buf *hint, const char *data, size_t n, const char *old, size_t n_old,
                   const char *what)
{
    if (n_old > 0 && has_line_numbers(old, n_old))
        buf_adds(hint,
                 "It seems to hold the line numbers of a view; leave each number and the tab behind it out");
    else if (n > LOOK_MAX || n_old > LOOK_MAX || n_old == 0 ||
             (!hint_folded(hint, data, n, old, n_old, what) && !hint_escaped(hint, data, n, old, n_old) &&
              !hint_alike(hint, data, n, old, n_old)))
        buf_adds(hint, "View the file and copy the text exactly, with its white space");
}

int edit_refuse_none(const char *data, size_t n, const char *old, size_t n_old, const char *shown,
                     struct err *err)
{
    struct buf hint BUF_AUTO = BUF_INIT;
    edit_put_hint(&hint, data, n, old, n_old, "old_str");
    return err_set(err, ERR_TOOL, "Nothing was replaced: old_str does not occur in %s. %s", shown, hint.data);
}
