#include "edit_apply.h"

#include <stdlib.h>
#include <string.h>

#include "edit_fold.h"
#include "edit_hint.h"
#include "edit_text.h"
#include "mem.h"

#define NOWHERE ((size_t)-1)
enum { DROPPED_MAX = 2, OTHERS_TOLD = 5 };

/* How alike lines have to be. */
enum level { EXACT, NO_END_BLANKS, FOLDED, LEVELS };

struct apply {
    const struct patch *p;
    const struct patch_file *f;
    const char *data;
    size_t *starts;     /* of each line of the content, and its end */
    size_t n_lines, at; /* lines that are in `out` already */
    long long drift;    /* by how much the hunks before were off */
    bool crlf;
    struct buf *out, *notes;
};

/* The old lines of a hunk, some of which may be left out at the ends. */
struct wanted {
    const struct patch_line **lines;
    size_t n, lead, trail; /* lead, trail: lines of context there */
};

struct place {
    size_t at, head, tail; /* head, tail: lines that were left out */
    enum level level;
};

/* ---- lines ---- */

static size_t line_len(const struct apply *a, size_t i)
{
    return a->starts[i + 1] - a->starts[i];
}

static bool ends_file(const struct apply *a, size_t i)
{
    return i + 1 == a->n_lines && a->data[a->starts[i + 1] - 1] != '\n';
}

static size_t without_blanks(const char *s, size_t n)
{
    while (n > 0 && (s[n - 1] == ' ' || s[n - 1] == '\t' || s[n - 1] == '\r'))
        n--;
    return n;
}

static bool is_alike(const struct apply *a, size_t i, const struct patch_line *l, enum level level)
{
    const char *s = a->data + a->starts[i];
    size_t n = line_len(a, i) - !ends_file(a, i);
    if (level == EXACT)
        return n == l->n && memcmp(s, l->s, n) == 0 && (!a->f->strict || ends_file(a, i) == l->no_newline);
    if (level == FOLDED)
        return fold_equal(s, n, l->s, l->n, FOLD_SPACE | FOLD_LOOKS);
    n = without_blanks(s, n);
    return n == without_blanks(l->s, l->n) && memcmp(s, l->s, n) == 0;
}

static bool fits(const struct apply *a, const struct wanted *w, const struct place *p)
{
    size_t n = w->n - p->head - p->tail;
    if (p->at < a->at || n > a->n_lines || p->at > a->n_lines - n)
        return false;
    for (size_t i = 0; i < n; i++)
        if (!is_alike(a, p->at + i, w->lines[p->head + i], p->level))
            return false;
    return true;
}

static void index_lines(struct apply *a, size_t n)
{
    size_t count = text_count_lf(a->data, n) + (n > 0 && a->data[n - 1] != '\n');
    a->starts = mem_alloc((count + 1) * sizeof *a->starts);
    const char *at = a->data;
    for (a->n_lines = 0; a->n_lines < count; a->n_lines++) {
        a->starts[a->n_lines] = (size_t)(at - a->data);
        const char *lf = memchr(at, '\n', n - (size_t)(at - a->data));
        at = lf ? lf + 1 : a->data + n;
    }
    a->starts[count] = n;
}

/* ---- where ---- */

/* The only place from `from` on that fits; *count: how many there are. */
static size_t only_place(const struct apply *a, const struct wanted *w, struct place p, size_t from,
                         size_t *count)
{
    size_t found = NOWHERE;
    *count = 0;
    for (p.at = from; p.at <= a->n_lines; p.at++)
        if (fits(a, w, &p) && (*count)++ == 0)
            found = p.at;
    return found;
}

/* In the place that is expected, else in the only one, or, behind an anchor, in the first. *count: how many
 * there were where none is taken. */
static bool find_so(const struct apply *a, const struct wanted *w, const struct patch_hunk *h,
                    size_t expected, struct place *p, size_t *count)
{
    size_t others, from = h->anchor ? expected : a->at;
    bool dropped = p->head + p->tail > 0;
    p->at = h->at_end ? a->n_lines - (w->n < a->n_lines ? w->n : a->n_lines) : expected + p->head;
    if ((h->numbered || h->at_end) && fits(a, w, p) && !dropped)
        return true;
    p->at = only_place(a, w, *p, from, &others);
    if (others == 0)
        return false;
    if (others > 1 && !h->anchor)
        *count = others;
    return others == 1 || h->anchor;
}

static bool find(const struct apply *a, const struct wanted *w, const struct patch_hunk *h, size_t expected,
                 struct place *p, size_t *count)
{
    *count = 0;
    for (int level = EXACT; level < LEVELS; level++) {
        *p = (struct place){.level = (enum level)level};
        if (find_so(a, w, h, expected, p, count))
            return true;
        if (*count > 0)
            return false;
    }
    for (size_t k = 1; k <= DROPPED_MAX; k++) {
        *p = (struct place){
            .head = k < w->lead ? k : w->lead, .tail = k < w->trail ? k : w->trail, .level = NO_END_BLANKS};
        if (p->head + p->tail == 0 || p->head + p->tail >= w->n)
            return false;
        if (find_so(a, w, h, expected, p, count))
            return true;
        if (*count > 0)
            return false;
    }
    return false;
}

/* ---- what comes there ---- */

static void put_end(struct apply *a, bool crlf)
{
    if (a->out->len > 0 && a->out->data[a->out->len - 1] != '\n')
        buf_adds(a->out, crlf ? "\r\n" : "\n");
}

static void put_old(struct apply *a, size_t to)
{
    buf_add(a->out, a->data + a->starts[a->at], a->starts[to] - a->starts[a->at]);
    a->at = to;
}

/* Whether lines that come in get CRs: those that they stand beside have them, and the patch has none. */
static bool wants_cr(const struct apply *a, const struct patch_hunk *h, const struct place *p)
{
    bool any_old = false;
    for (size_t i = 0; i < h->n; i++) {
        const struct patch_line *l = &a->p->lines[h->first + i];
        any_old |= l->op != '+';
        if (l->n > 0 && l->s[l->n - 1] == '\r')
            return false;
    }
    if (p->level == EXACT)
        return !any_old && !a->f->strict && a->crlf;
    const char *end = a->data + a->starts[p->at + 1];
    return line_len(a, p->at) > 1 && end[-1] == '\n' && end[-2] == '\r';
}

static void put_hunk(struct apply *a, const struct patch_hunk *h, const struct place *p)
{
    bool cr = wants_cr(a, h, p);
    size_t old = 0, n_old = 0;
    put_old(a, p->at);
    for (size_t i = 0; i < h->n; i++)
        n_old += a->p->lines[h->first + i].op != '+';
    for (size_t i = 0; i < h->n; i++) {
        const struct patch_line *l = &a->p->lines[h->first + i];
        if (l->op != '+') {
            bool left_out = old < p->head || old >= n_old - p->tail;
            old++;
            if (left_out)
                continue;
        }
        if (l->op == ' ') {
            put_end(a, cr);
            put_old(a, a->at + 1);
        } else if (l->op == '-') {
            a->at++;
        } else {
            put_end(a, cr);
            buf_add(a->out, l->s, l->n);
            if (!l->no_newline)
                buf_adds(a->out, cr ? "\r\n" : "\n");
        }
    }
}

/* ---- one hunk ---- */

static void put_note(struct apply *a, const struct patch_hunk *h, const struct place *p, size_t expected,
                     const char *shown)
{
    static const char *const alike[] = {"", "with blanks at the ends of lines not as in the file",
                                        "with white space or lookalikes not as in the file"};
    struct buf say BUF_AUTO = BUF_INIT;
    if (h->numbered && p->at != expected + p->head)
        buf_addf(&say, ", %zu lines %s than it says",
                 p->at > expected + p->head ? p->at - expected - p->head : expected + p->head - p->at,
                 p->at > expected + p->head ? "further down" : "further up");
    if (p->head + p->tail > 0)
        buf_addf(&say, ", without %zu lines of its context", p->head + p->tail);
    else if (p->level > EXACT)
        buf_addf(&say, ", %s", alike[p->level]);
    if (h->miscounted)
        buf_adds(&say, ", though its header counts other lines");
    if (say.len > 0)
        buf_addf(a->notes, "[%s: the hunk in line %zu of the patch was applied at line %zu%s]\n", shown,
                 h->line, p->at + 1, say.data);
}

static void put_text(const struct patch *p, const struct patch_hunk *h, char without, struct buf *text)
{
    for (size_t i = 0; i < h->n; i++) {
        const struct patch_line *l = &p->lines[h->first + i];
        if (l->op == without)
            continue;
        buf_add(text, l->s, l->n);
        buf_addc(text, '\n');
    }
}

static int refuse(const struct apply *a, const struct patch_hunk *h, size_t count, const char *shown,
                  struct err *err)
{
    struct buf hint BUF_AUTO = BUF_INIT;
    struct buf old BUF_AUTO = BUF_INIT;
    struct buf new BUF_AUTO = BUF_INIT;
    size_t n = a->starts[a->n_lines];
    put_text(a->p, h, '+', &old);
    put_text(a->p, h, '-', &new);
    if (count > 0)
        buf_addf(&hint, "it fits in %zu places; give more lines of context, or right line numbers", count);
    else if (new.len > 0 && memmem(a->data, n, new.data, new.len))
        buf_adds(&hint, "what it leads to is there already: was it applied before?");
    else
        edit_put_hint(&hint, a->data, n, buf_str(&old), old.len, "the hunk");
    return err_set(err, ERR_TOOL,
                   "Nothing was changed: the hunk in line %zu of the patch does not fit into %s%s: %s",
                   h->line, shown, a->at > 0 && count == 0 ? " behind the one before it" : "", hint.data);
}

static struct wanted wanted_of(const struct apply *a, const struct patch_hunk *h)
{
    struct wanted w = {.lines = mem_alloc((h->n + 1) * sizeof *w.lines)};
    bool any = false; /* that is no context */
    for (size_t i = 0; i < h->n; i++) {
        const struct patch_line *l = &a->p->lines[h->first + i];
        if (l->op != '+')
            w.lines[w.n++] = l;
        any |= l->op != ' ';
        w.trail = l->op == ' ' ? w.trail + 1 : 0;
        w.lead += l->op == ' ' && !any;
    }
    return w;
}

/* The line behind the first one that is the anchor. */
static int find_anchor(const struct apply *a, const struct patch_hunk *h, size_t *behind, const char *shown,
                       struct err *err)
{
    const struct patch_line anchor = {.s = h->anchor, .n = h->n_anchor}, *one = &anchor;
    const struct wanted it = {.lines = &one, .n = 1};
    size_t count;
    for (int level = NO_END_BLANKS; level < LEVELS; level++) {
        size_t at = only_place(a, &it, (struct place){.level = (enum level)level}, a->at, &count);
        *behind = at + 1;
        if (at != NOWHERE)
            return 0;
    }
    return err_set(
        err, ERR_TOOL,
        "Nothing was changed: the line '%.*s', behind which the hunk in line %zu of the patch belongs, is "
        "not in %s",
        (int)(h->n_anchor < 200 ? h->n_anchor : 200), h->anchor, h->line, shown);
}

static int find_place(const struct apply *a, const struct patch_hunk *h, size_t expected, struct place *p,
                      const char *shown, struct err *err)
{
    size_t count = 0;
    struct wanted w = wanted_of(a, h);
    bool found;
    if (w.n > 0) {
        found = find(a, &w, h, expected, p, &count);
    } else { /* only new lines */
        p->at = h->numbered || h->anchor ? expected : a->n_lines;
        found = p->at >= a->at && p->at <= a->n_lines && !(h->numbered && h->n_old > 0);
    }
    free(w.lines);
    return found ? 0 : refuse(a, h, count, shown, err);
}

static int apply_hunk(struct apply *a, const struct patch_hunk *h, const char *shown, struct err *err)
{
    struct place p = {0};
    size_t expected = a->at;
    if (h->numbered) {
        long long line = (long long)h->old_start - (h->n_old > 0) + a->drift;
        expected = line > 0 ? (size_t)line : 0;
    }
    if ((h->anchor && find_anchor(a, h, &expected, shown, err) < 0) ||
        find_place(a, h, expected, &p, shown, err) < 0)
        return -1;
    if (h->numbered)
        a->drift += (long long)p.at - (long long)(expected + p.head);
    put_note(a, h, &p, expected, shown);
    put_hunk(a, h, &p);
    return 0;
}

int patch_apply(const struct patch *p, const struct patch_file *f, const char *data, size_t n,
                const char *shown, struct buf *out, struct buf *notes, struct err *err)
{
    struct apply a = {.p = p, .f = f, .data = data, .out = out, .notes = notes};
    struct buf others BUF_AUTO = BUF_INIT;
    struct err more;
    size_t failed = 0;
    buf_reserve(out, n);
    index_lines(&a, n);
    a.crlf = text_is_crlf(data, n);
    for (size_t i = 0; i < f->n; i++) {
        const struct patch_hunk *h = &p->hunks[f->first + i];
        if (apply_hunk(&a, h, shown, failed > 0 ? &more : err) < 0 && failed++ > 0 && failed <= OTHERS_TOLD)
            buf_addf(&others, "%s %zu", others.len > 0 ? "," : "", h->line);
    }
    put_old(&a, a.n_lines);
    free(a.starts);
    if (others.len > 0) {
        char *first MEM_AUTO = mem_strdup(err->msg);
        err_set(err, ERR_TOOL, "%.800s. Nor do those in lines%s%s", first, others.data,
                failed > OTHERS_TOLD ? ", …" : "");
    }
    return failed > 0 ? -1 : 0;
}
