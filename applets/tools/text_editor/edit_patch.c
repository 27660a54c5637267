#include "edit_patch.h"

#include <stdlib.h>
#include <string.h>

#include "edit_path.h"
#include "mem.h"

struct line {
    const char *s;
    size_t n; /* without its end */
};

struct reader {
    struct patch *p;
    const char *at, *end;
    size_t number; /* of the line at `at` */
    struct patch_file *file;
    bool git; /* the file began with "diff --git" and no hunk has come */
    struct err *err;
};

/* ---- lines ---- */

static bool peek(const struct reader *r, size_t ahead, struct line *line)
{
    const char *at = r->at, *lf;
    for (;; ahead--, at = lf + 1) {
        if (at >= r->end)
            return false;
        lf = memchr(at, '\n', (size_t)(r->end - at));
        if (!lf)
            lf = r->end;
        if (ahead == 0)
            break;
    }
    *line = (struct line){at, (size_t)(lf - at)};
    return true;
}

static void skip(struct reader *r, const struct line *line)
{
    r->at = line->s + line->n + 1;
    r->number++;
}

/* What stands behind the word at the front; NULL when it isn't there. A CR at the end belongs to the line
 * end. */
static const char *behind(const struct line *line, const char *word, size_t *n)
{
    size_t len = strlen(word);
    if (line->n < len || memcmp(line->s, word, len) != 0)
        return NULL;
    *n = line->n - len;
    if (*n > 0 && line->s[line->n - 1] == '\r')
        --*n;
    return line->s + len;
}

static bool begins(const struct line *line, const char *word)
{
    size_t n;
    return behind(line, word, &n) != NULL;
}

static int refuse(const struct reader *r, const char *what)
{
    return err_set(r->err, ERR_TOOL, "Nothing was changed: line %zu of the patch: %s", r->number, what);
}

/* ---- what is collected ---- */

static void *grown(void *list, size_t n, size_t size)
{
    return (n & (n - 1)) == 0 ? mem_realloc(list, (n ? 2 * n : 1) * size) : list;
}

static void add_file(struct reader *r, int kind)
{
    struct patch *p = r->p;
    p->files = grown(p->files, p->n_files, sizeof *p->files);
    r->file = &p->files[p->n_files++];
    *r->file =
        (struct patch_file){.kind = (unsigned)kind, .line = r->number, .first = p->n_hunks, .strict = true};
    r->git = false;
}

static struct patch_hunk *add_hunk(struct reader *r)
{
    struct patch *p = r->p;
    p->hunks = grown(p->hunks, p->n_hunks, sizeof *p->hunks);
    struct patch_hunk *h = &p->hunks[p->n_hunks++];
    *h = (struct patch_hunk){.line = r->number, .first = p->n_lines};
    r->file->n++;
    r->git = false;
    return h;
}

static void add_line(struct reader *r, struct patch_hunk *h, char op, const char *s, size_t n)
{
    struct patch *p = r->p;
    p->lines = grown(p->lines, p->n_lines, sizeof *p->lines);
    p->lines[p->n_lines++] = (struct patch_line){.op = op, .s = s, .n = n};
    h->n++;
}

/* ---- names ---- */

/* A name of a header: up to a tab, or in quotes. */
static char *take_name(const char *s, size_t n)
{
    const char *quote = n > 1 && *s == '"' ? memrchr(s, '"', n) : NULL;
    char *plain = quote > s ? edit_path_unquoted(s, (size_t)(quote - s) + 1) : NULL;
    const char *tab = memchr(s, '\t', n);
    return plain ? plain : mem_dup(s, tab ? (size_t)(tab - s) : n);
}

static bool is_null(const char *name)
{
    return strcmp(name, "/dev/null") == 0;
}

static bool has_prefix(const char *name, const char *letters)
{
    return name[0] && strchr(letters, name[0]) && name[1] == '/' && name[2];
}

/* a/ and b/, or what git puts there instead of them, are no part of a name where both have one. */
static void strip(char *old, char *new)
{
    static const char letters[] = "abciow12";
    if ((is_null(old) || has_prefix(old, letters)) && (is_null(new) || has_prefix(new, letters)))
        for (int i = 0; i < 2; i++) {
            char *name = i == 0 ? old : new;
            if (!is_null(name))
                memmove(name, name + 2, strlen(name) - 1);
        }
}

static void set_name(char **to, char *name)
{
    free(*to);
    *to = name;
}

/* "a/NAME b/NAME", where nothing else says the name. */
static void take_git_names(struct reader *r, const char *s, size_t n)
{
    for (size_t i = 1; i + 1 < n; i++) {
        if (s[i] != ' ')
            continue;
        char *old = take_name(s, i), *new = take_name(s + i + 1, n - i - 1);
        strip(old, new);
        bool same = strcmp(old, new) == 0;
        free(old);
        if (same) {
            set_name(&r->file->name, new);
            return;
        }
        free(new);
    }
}

/* ---- git's own headers ---- */

static int take_git_header(struct reader *r, const struct line *line)
{
    struct patch_file *f = r->file;
    const char *s;
    size_t n;
    if ((s = behind(line, "rename from ", &n)) || (s = behind(line, "copy from ", &n)))
        set_name(&f->name, take_name(s, n));
    else if ((s = behind(line, "rename to ", &n)))
        set_name(&f->to, take_name(s, n));
    else if ((s = behind(line, "copy to ", &n)))
        set_name(&f->to, take_name(s, n)), f->copy = true;
    else if ((s = behind(line, "new mode ", &n)) || (s = behind(line, "new file mode ", &n)))
        f->mode = (unsigned)strtoul(s, NULL, 8);
    else if (begins(line, "GIT binary patch") || begins(line, "Binary files "))
        return refuse(r, "a binary file can't be patched here; copy it");
    if (begins(line, "new file mode "))
        f->kind = PATCH_ADD;
    if ((s = behind(line, "deleted file mode ", &n)))
        f->kind = PATCH_DELETE;
    const char *blank = begins(line, "index ") ? memrchr(line->s + 6, ' ', line->n - 6) : NULL;
    unsigned mode = s ? (unsigned)strtoul(s, NULL, 8) : blank ? (unsigned)strtoul(blank, NULL, 8) : f->mode;
    if ((mode & 0170000) && (mode & 0170000) != 0100000)
        return refuse(r, "only regular files can be patched: no link, no submodule");
    return 0;
}

static void take_names(struct reader *r, const char *a, size_t n_a, const char *b, size_t n_b)
{
    char *old = take_name(a, n_a), *new = take_name(b, n_b);
    struct patch_file *f = r->file;
    strip(old, new);
    if (is_null(old))
        f->kind = PATCH_ADD;
    else if (is_null(new))
        f->kind = PATCH_DELETE;
    if (f->to) { /* a rename has said them */
        free(old);
        free(new);
        return;
    }
    bool by_new = !is_null(new);
    set_name(&f->name, by_new ? new : old);
    set_name(&f->old_name, by_new ? old : new);
    if (is_null(f->old_name) || strcmp(f->name, f->old_name) == 0)
        set_name(&f->old_name, NULL);
}

/* ---- hunks ---- */

static bool take_number(const char **s, const char *end, size_t *value)
{
    const char *at = *s;
    *value = 0;
    for (; at < end && *at >= '0' && *at <= '9' && *value < 1UL << 40; at++)
        *value = *value * 10 + (size_t)(*at - '0');
    bool any = at > *s;
    *s = at;
    return any;
}

/* "-12,3" */
static bool take_range(const char **s, const char *end, char sign, size_t *start, size_t *count)
{
    while (*s < end && **s == ' ')
        ++*s;
    if (*s == end || *(*s)++ != sign || !take_number(s, end, start))
        return false;
    *count = 1;
    return *s == end || **s != ',' || (++*s, take_number(s, end, count));
}

/* Whether the lines from here on are the head of something else, whatever a hunk may still want. */
static bool is_head(const struct reader *r)
{
    struct line a, b, c;
    if (!peek(r, 0, &a) || begins(&a, "diff --git ") || begins(&a, "@@") || begins(&a, "*** ") ||
        (a.n > 0 && !(a.s[0] && strchr(" +-\\\r", a.s[0]))))
        return true;
    return begins(&a, "--- ") && peek(r, 1, &b) && begins(&b, "+++ ") && peek(r, 2, &c) && begins(&c, "@@");
}

/* What a mail ends with. */
static bool is_signature(const struct line *line)
{
    return line->n == 3 && memcmp(line->s, "-- ", 3) == 0;
}

/* The lines of a hunk: so many old and new ones as its header says, and those that are too much for it; with
 * `all` as many as there are. */
static void take_lines(struct reader *r, struct patch_hunk *h, size_t old, size_t new, bool all)
{
    struct line line;
    while (!is_head(r) && peek(r, 0, &line)) {
        bool bare = line.n == 0 || line.s[0] == '\r'; /* an empty line whose blank was taken away */
        char op = bare ? ' ' : line.s[0];
        if (op == '\\') {
            if (h->n > 0)
                r->p->lines[r->p->n_lines - 1].no_newline = true;
            skip(r, &line);
            continue;
        }
        if (!all && old == 0 && new == 0 && (bare || is_signature(&line)))
            break;
        if (!all && ((old == 0 && op != '+') || (new == 0 && op != '-')))
            h->miscounted = true;
        old -= old > 0 && op != '+';
        new -= new > 0 && op != '-';
        add_line(r, h, op, line.s + !bare, line.n - !bare);
        skip(r, &line);
    }
    h->miscounted |= !all && (old > 0 || new > 0);
}

/* Empty lines behind a hunk that doesn't say where it ends are no part of it. */
static void drop_bare_end(struct reader *r, struct patch_hunk *h)
{
    while (h->n > 0) {
        const struct patch_line *last = &r->p->lines[r->p->n_lines - 1];
        if (last->op != ' ' || last->n > 0 || (last->s[-1] == ' '))
            return;
        h->n--;
        r->p->n_lines--;
    }
}

static int take_hunk(struct reader *r, const struct line *line)
{
    size_t n = 0, old = 0, new = 0, start;
    const char *s = behind(line, "@@", &n), *at = s, *end = s + n;
    if (!r->file)
        add_file(r, PATCH_UPDATE);
    struct patch_hunk *h = add_hunk(r);
    skip(r, line);
    h->numbered = take_range(&at, end, '-', &h->old_start, &old) && take_range(&at, end, '+', &start, &new);
    if (!h->numbered) {
        while (n > 0 && *s == ' ')
            s++, n--;
        if (n >= 2 && memcmp(s + n - 2, "@@", 2) == 0)
            n -= 2;
        h->anchor = n > 0 && *s != '-' && !(n >= 2 && s[0] == '.' && s[1] == '.') ? s : NULL;
        h->n_anchor = n;
        r->file->strict = false;
    }
    h->n_old = old;
    take_lines(r, h, old, new, !h->numbered);
    if (!h->numbered || h->miscounted)
        drop_bare_end(r, h);
    if (h->n == 0)
        return refuse(r, "the hunk that ends here has no lines");
    return 0;
}

/* ---- the other format ---- */

static int take_begin_hunks(struct reader *r)
{
    struct line line;
    while (peek(r, 0, &line)) {
        if (begins(&line, "*** End of File")) {
            if (r->file->n > 0)
                r->p->hunks[r->p->n_hunks - 1].at_end = true;
            skip(r, &line);
        } else if (begins(&line, "@@")) {
            if (take_hunk(r, &line) < 0) {
                /* one anchor above another */
                if (!peek(r, 0, &line) || !begins(&line, "@@"))
                    return -1;
                r->file->n--;
                r->p->n_hunks--;
            }
        } else if (begins(&line, "*** ")) {
            return 0;
        } else if (!is_head(r) && (line.n > 0 || r->file->n == 0)) {
            take_lines(r, add_hunk(r), 0, 0, true);
            drop_bare_end(r, &r->p->hunks[r->p->n_hunks - 1]);
        } else {
            skip(r, &line);
        }
    }
    return 0;
}

static int take_added(struct reader *r)
{
    struct line line;
    struct patch_hunk *h = add_hunk(r);
    h->numbered = true;
    while (peek(r, 0, &line) && !begins(&line, "*** ")) {
        if (line.n > 0 && line.s[0] != '+' && line.s[0] != '\r')
            return refuse(r, "each line of a file that is added begins with a +");
        if (line.n > 0 && line.s[0] == '+')
            add_line(r, h, '+', line.s + 1, line.n - 1);
        skip(r, &line);
    }
    if (h->n == 0) {
        r->p->n_hunks--;
        r->file->n = 0;
    }
    return 0;
}

/* One file of it; 1: the line is none of its. */
static int take_begin_file(struct reader *r, const struct line *line)
{
    static const char *const words[] = {"*** Update File: ", "*** Add File: ", "*** Delete File: "};
    struct line next;
    size_t n = 0, i = 0;
    const char *s = NULL;
    while (i < 3 && !(s = behind(line, words[i], &n)))
        i++;
    if (!s)
        return 1;
    add_file(r, (int)i);
    r->file->strict = false;
    while (n > 0 && s[n - 1] == ' ')
        n--;
    r->file->name = mem_dup(s, n);
    skip(r, line);
    if (peek(r, 0, &next) && (s = behind(&next, "*** Move to: ", &n)) && i == 0) {
        r->file->to = mem_dup(s, n);
        skip(r, &next);
    }
    return i == 0 ? take_begin_hunks(r) : i == 1 ? take_added(r) : 0;
}

/* ---- the whole ---- */

static int take(struct reader *r, const struct line *line)
{
    struct line next;
    const char *s, *t;
    size_t n, m;
    int rc = take_begin_file(r, line);
    if (rc <= 0) {
        if (rc == 0)
            r->file = NULL;
        return rc;
    }
    if (begins(line, "@@"))
        return take_hunk(r, line);
    if ((s = behind(line, "diff --git ", &n)) != NULL) {
        add_file(r, PATCH_UPDATE);
        r->git = true;
        take_git_names(r, s, n);
    } else if ((s = behind(line, "--- ", &n)) != NULL && peek(r, 1, &next) &&
               (t = behind(&next, "+++ ", &m)) != NULL) {
        if (!r->git)
            add_file(r, PATCH_UPDATE);
        take_names(r, s, n, t, m);
        skip(r, line);
        skip(r, &next);
        return 0;
    } else if ((r->git && take_git_header(r, line) < 0) ||
               (!r->git && begins(line, "Binary files ") &&
                refuse(r, "a binary file can't be patched here; copy it"))) {
        return -1;
    }
    skip(r, line);
    return 0;
}

int patch_read(struct patch *p, const char *text, size_t n, struct err *err)
{
    struct reader r = {.p = p, .at = text, .end = text + n, .number = 1, .err = err};
    struct line line;
    while (peek(&r, 0, &line))
        if (take(&r, &line) < 0)
            return -1;
    if (p->n_files == 0)
        return err_set(
            err, ERR_TOOL,
            "Nothing was changed: this is no patch; give a unified diff (--- FILE, +++ FILE, @@ -1,3 "
            "+1,4 @@), or *** Begin Patch with *** Update File: FILE");
    return 0;
}

void patch_release(struct patch *p)
{
    for (size_t i = 0; i < p->n_files; i++) {
        free(p->files[i].name);
        free(p->files[i].old_name);
        free(p->files[i].to);
    }
    free(p->files);
    free(p->hunks);
    free(p->lines);
    *p = (struct patch){0};
}
