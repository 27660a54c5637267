#include "edit_match.h"

#include <string.h>

#include "edit_hint.h"
#include "edit_text.h"

enum { LINES_LISTED = 60 };

void edit_put_lines(struct buf *out, const char *s, size_t n, bool crlf)
{
    const char *end = s + n, *from = s, *lf;
    while (crlf && (lf = memchr(from, '\n', (size_t)(end - from))) != NULL) {
        bool has_cr = lf > s && lf[-1] == '\r';
        buf_add(out, from, (size_t)(lf - from));
        buf_adds(out, has_cr ? "\n" : "\r\n");
        from = lf + 1;
    }
    buf_add(out, from, (size_t)(end - from));
}

/* Number of matches that don't overlap; *first: the offset of the first. */
static size_t count_matches(const char *data, size_t n, const char *old, size_t n_old, size_t *first)
{
    size_t count = 0;
    const char *at = data, *end = data + n;
    while ((at = memmem(at, (size_t)(end - at), old, n_old)) != NULL) {
        if (count++ == 0)
            *first = (size_t)(at - data);
        at += n_old;
    }
    return count;
}

static int refuse_many(const char *data, size_t n, const char *old, size_t n_old, size_t count,
                       const char *shown, struct err *err)
{
    struct buf lines BUF_AUTO = BUF_INIT;
    size_t line = 1, last = 0, listed = 0;
    const char *from = data, *at = data, *end = data + n;
    while (listed < LINES_LISTED && (at = memmem(at, (size_t)(end - at), old, n_old)) != NULL) {
        line += text_count_lf(from, (size_t)(at - from));
        if (line != last) {
            buf_addf(&lines, "%s%zu", listed > 0 ? ", " : "", line);
            listed++;
        }
        last = line;
        from = at;
        at += n_old;
    }
    return err_set(
        err, ERR_TOOL,
        "Nothing was replaced: old_str occurs %zu times in %s, in line%s %s%s. Give more of the text "
        "around the one that is meant, so that it is unique",
        count, shown, listed == 1 ? "" : "s", lines.data, listed == LINES_LISTED ? ", …" : "");
}

static void strip_cr(struct buf *out, const char *s, size_t n)
{
    buf_reserve(out, n);
    const char *end = s + n, *lf;
    for (const char *from = s; from < end; from = lf + 1) {
        lf = memchr(from, '\n', (size_t)(end - from));
        if (!lf) {
            buf_add(out, from, (size_t)(end - from));
            return;
        }
        size_t len = (size_t)(lf - from);
        buf_add(out, from, len > 0 && lf[-1] == '\r' ? len - 1 : len);
        buf_addc(out, '\n');
    }
}

/* Offset in a content of what is at `at` in the same without its CRs; a line end is one thing and begins with
 * its CR. */
static size_t with_cr(const char *data, size_t n, size_t at)
{
    size_t i = 0;
    while (at > 0) {
        const char *lf = memchr(data + i, '\n', n - i);
        size_t len = lf ? (size_t)(lf - (data + i)) : n - i;
        bool cr = lf && len > 0 && lf[-1] == '\r';
        size_t text = cr ? len - 1 : len;
        if (at <= text)
            return i + at;
        at -= text + 1;
        i += len + 1;
    }
    return i;
}

static bool is_bare_lf(const char *s, size_t i)
{
    return s[i] == '\n' && (i == 0 || s[i - 1] != '\r');
}

/* The n-th line end of the new text becomes what the n-th of the old one is, and beyond those what the last
 * one is. */
static void put_like(struct buf *out, const struct text *new, const char *old, size_t n_old)
{
    size_t at = 0;
    bool crlf = false;
    for (size_t i = 0; i < new->n; i++) {
        if (!is_bare_lf(new->s, i)) {
            buf_addc(out, new->s[i]);
            continue;
        }
        const char *lf = at < n_old ? memchr(old + at, '\n', n_old - at) : NULL;
        if (lf) {
            crlf = lf > old && lf[-1] == '\r';
            at = (size_t)(lf - old) + 1;
        }
        buf_adds(out, crlf ? "\r\n" : "\n");
    }
}

/* A LF of the old text may stand for a CRLF, but a CRLF for nothing else. The texts are the same without CRs
 * in their line ends. */
static bool keeps_crlf(const struct text *old, const char *s, size_t n)
{
    const char *theirs = s;
    for (const char *at = old->s, *lf; (lf = memchr(at, '\n', old->n - (size_t)(at - old->s))) != NULL;
         at = lf + 1) {
        theirs = memchr(theirs, '\n', n - (size_t)(theirs - s));
        if (!theirs || (!is_bare_lf(old->s, (size_t)(lf - old->s)) && is_bare_lf(s, (size_t)(theirs - s))))
            return false;
        theirs++;
    }
    return true;
}

/* Tries with line ends compared as such. Number of matches: 0 or 1; -1: there are more. */
static int match_line_ends(const char *data, size_t n, const struct text *old, const struct text *new,
                           const char *shown, struct splice *s, struct buf *put, struct err *err)
{
    struct buf plain BUF_AUTO = BUF_INIT;
    struct buf wanted BUF_AUTO = BUF_INIT;
    size_t at = 0;
    strip_cr(&plain, data, n);
    strip_cr(&wanted, old->s, old->n);
    if (plain.len == n)
        return 0;
    size_t count = count_matches(buf_str(&plain), plain.len, wanted.data, wanted.len, &at);
    if (count > 1)
        return refuse_many(buf_str(&plain), plain.len, wanted.data, wanted.len, count, shown, err);
    if (count == 0)
        return 0;
    size_t begin = with_cr(data, n, at), end = with_cr(data, n, at + wanted.len);
    if (!keeps_crlf(old, data + begin, end - begin))
        return 0;
    put_like(put, new, data + begin, end - begin);
    *s = (struct splice){.at = begin, .cut = end - begin, .put = buf_str(put), .n_put = put->len};
    return 1;
}

static bool has_bare_lf(const struct text *text)
{
    for (size_t i = 0; i < text->n; i++)
        if (is_bare_lf(text->s, i))
            return true;
    return false;
}

int edit_match(const char *data, size_t n, const struct text *old, const struct text *new, const char *shown,
               struct splice *s, struct buf *put, bool *crlf, struct err *err)
{
    size_t at = 0;
    *crlf = false;
    if (old->n == 0)
        return err_set(err, ERR_TOOL, "old_str is empty; to put text in without replacing any, use `insert`");
    size_t count = count_matches(data, n, old->s, old->n, &at);
    if (count > 1)
        return refuse_many(data, n, old->s, old->n, count, shown, err);
    if (count == 1) {
        *s = (struct splice){.at = at, .cut = old->n, .put = new->s, .n_put = new->n};
        if (memchr(old->s, '\n', old->n) || !has_bare_lf(new) || memchr(new->s, '\r', new->n) ||
            !text_is_crlf(data, n))
            return 0;
        edit_put_lines(put, new->s, new->n, true);
        *crlf = true;
        s->put = put->data;
        s->n_put = put->len;
        return 0;
    }
    if (has_bare_lf(old)) {
        int found = match_line_ends(data, n, old, new, shown, s, put, err);
        *crlf = found == 1 && put->len != new->n;
        if (found != 0)
            return found > 0 ? 0 : -1;
    }
    return edit_refuse_none(data, n, old->s, old->n, shown, err);
}
