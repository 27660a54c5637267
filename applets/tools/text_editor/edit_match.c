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

static const char *next_match(const char *at, const char *end, const struct text *old)
{
    return memmem(at, (size_t)(end - at), old->s, old->n);
}

/* Number of matches that don't overlap. */
static size_t count_matches(const char *data, size_t n, const struct text *old)
{
    size_t count = 0;
    for (const char *at = data; (at = next_match(at, data + n, old)) != NULL; at += old->n)
        count++;
    return count;
}

static void put_places(const char *data, size_t n, const struct text *old, struct buf *out)
{
    size_t line = 1, last = 0, listed = 0;
    const char *from = data, *at = data;
    struct buf lines BUF_AUTO = BUF_INIT;
    while (listed < LINES_LISTED && (at = next_match(at, data + n, old)) != NULL) {
        line += text_count_lf(from, (size_t)(at - from));
        if (line != last)
            buf_addf(&lines, "%s%zu", listed++ > 0 ? ", " : "", line);
        last = line;
        from = at;
        at += old->n;
    }
    buf_addf(out, "line%s %s%s", listed == 1 ? "" : "s", lines.data, listed == LINES_LISTED ? ", …" : "");
}

/* Whether there are as many as there have to be, and in which lines they are. */
static int check_count(const char *data, size_t n, const struct text *old, const struct edit_wish *wish,
                       const char *shown, struct edit_found *f, struct err *err)
{
    put_places(data, n, old, &f->lines);
    if (wish->expected > 0 && (unsigned long long)wish->expected != f->count)
        return err_set(
            err, ERR_TOOL,
            "Nothing was replaced: old_str occurs %zu time%s in %s, in %s, and expected_count is %lld",
            f->count, f->count == 1 ? "" : "s", shown, f->lines.data, wish->expected);
    if (f->count > 1 && !wish->all && wish->expected == 0)
        return err_set(err, ERR_TOOL,
                       "Nothing was replaced: old_str occurs %zu times in %s, in %s. Give more of the text "
                       "around the one that is meant, so that it is unique, or `replace_all` to replace each",
                       f->count, shown, f->lines.data);
    return 0;
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

/* One more place, which is behind those before, and what comes there. */
static int add_place(const char *data, size_t begin, size_t end, const struct text *new, bool like, bool crlf,
                     struct edit_found *f)
{
    size_t from = f->s.at + f->s.cut;
    if (f->s.put == NULL)
        f->s.at = begin;
    else if (buf_add(&f->put, data + from, begin - from) < 0)
        return -1;
    if (buf_reserve(&f->put, 2 * new->n) < 0)
        return -1;
    if (like)
        put_like(&f->put, new, data + begin, end - begin);
    else
        edit_put_lines(&f->put, new->s, new->n, crlf);
    f->s.cut = end - f->s.at;
    f->s.put = buf_str(&f->put);
    f->s.n_put = f->put.len;
    return 0;
}

static int too_large(const char *shown, struct err *err)
{
    return err_set(err, ERR_TOOL, "Nothing was replaced: %s would become larger than %llu MiB", shown,
                   EDIT_FILE_MAX >> 20);
}

static bool has_bare_lf(const struct text *text)
{
    for (size_t i = 0; i < text->n; i++)
        if (is_bare_lf(text->s, i))
            return true;
    return false;
}

/* With line ends compared as such. Number of matches, 0: there are none like that; -1: refused. */
static int match_line_ends(const char *data, size_t n, const struct edit_wish *w, const char *shown,
                           struct edit_found *f, struct err *err)
{
    struct buf plain BUF_AUTO = BUF_INIT;
    struct buf wanted BUF_AUTO = BUF_INIT;
    strip_cr(&plain, data, n);
    strip_cr(&wanted, w->old->s, w->old->n);
    struct text old = {wanted.data, wanted.len};
    if (plain.len == n || (f->count = count_matches(buf_str(&plain), plain.len, &old)) == 0)
        return 0;
    if (check_count(plain.data, plain.len, &old, w, shown, f, err) < 0)
        return -1;
    size_t done = 0, end = 0; /* the same place in both */
    for (const char *at = plain.data; (at = next_match(at, plain.data + plain.len, &old)) != NULL;) {
        size_t begin = end + with_cr(data + end, n - end, (size_t)(at - plain.data) - done);
        end = begin + with_cr(data + begin, n - begin, old.n);
        done = (size_t)(at - plain.data) + old.n;
        at += old.n;
        if (!keeps_crlf(w->old, data + begin, end - begin))
            return 0;
        if (add_place(data, begin, end, w->new, true, false, f) < 0)
            return too_large(shown, err);
    }
    f->crlf = f->count == 1 ? f->put.len != w->new->n : has_bare_lf(w->new);
    return 1;
}

void edit_found_release(struct edit_found *f)
{
    buf_release(&f->put);
    buf_release(&f->lines);
}

static int match_exactly(const char *data, size_t n, const struct edit_wish *w, const char *shown,
                         struct edit_found *f, struct err *err)
{
    const struct text *old = w->old, *new = w->new;
    if (check_count(data, n, old, w, shown, f, err) < 0)
        return -1;
    bool crlf = !memchr(old->s, '\n', old->n) && has_bare_lf(new) && !memchr(new->s, '\r', new->n) &&
                text_is_crlf(data, n);
    f->crlf = crlf;
    for (const char *at = data; (at = next_match(at, data + n, old)) != NULL; at += old->n)
        if (add_place(data, (size_t)(at - data), (size_t)(at - data) + old->n, new, false, crlf, f) < 0)
            return too_large(shown, err);
    return 0;
}

int edit_match(const char *data, size_t n, const struct edit_wish *w, const char *shown, struct edit_found *f,
               struct err *err)
{
    f->put.max = EDIT_FILE_MAX;
    if (w->old->n == 0)
        return err_set(err, ERR_TOOL, "old_str is empty; to put text in without replacing any, use `insert`");
    f->count = count_matches(data, n, w->old);
    if (f->count > 0)
        return match_exactly(data, n, w, shown, f, err);
    int found = has_bare_lf(w->old) ? match_line_ends(data, n, w, shown, f, err) : 0;
    if (found != 0)
        return found > 0 ? 0 : -1;
    return edit_refuse_none(data, n, w->old->s, w->old->n, shown, err);
}

/* Offset of the begin of line `line` (from 1) of those that a file has. */
static size_t line_begin(const char *data, size_t n, long long line)
{
    const char *at = data;
    while (--line > 0)
        at = (const char *)memchr(at, '\n', n - (size_t)(at - data)) + 1;
    return (size_t)(at - data);
}

#define BOM "\xEF\xBB\xBF"

int edit_insertion(const char *data, size_t n, long long line, const struct text *text, const char *shown,
                   struct buf *put, struct splice *s, struct err *err)
{
    long long n_lines = 1 + (long long)text_count_lf(data, n);
    if (line < 0 || line > n_lines)
        return err_set(
            err, ERR_TOOL,
            "Invalid `insert_line` %lld: %s has %lld line%s, so give a number from 0 to %lld; nothing was "
            "inserted",
            line, shown, n_lines, n_lines == 1 ? "" : "s", n_lines);
    bool at_end = line == n_lines;
    size_t at = at_end ? n : line_begin(data, n, line + 1);
    const char *model = at_end ? memrchr(data, '\n', n) : line > 0 ? data + at - 1 : memchr(data, '\n', n);
    bool crlf = model && model > data && model[-1] == '\r';
    if (line == 0 && n >= 3 && memcmp(data, BOM, 3) == 0)
        at = 3; /* a mark in the middle of the text would be none */
    if (at_end)
        buf_adds(put, crlf ? "\r\n" : "\n");
    edit_put_lines(put, text->s, text->n, crlf);
    if (!at_end)
        buf_adds(put, crlf ? "\r\n" : "\n");
    *s = (struct splice){.at = at, .put = put->data, .n_put = put->len};
    return 0;
}
