/* Searching the contents of files. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "expression.h"
#include "glob.h"
#include "io.h"
#include "json.h"
#include "mem.h"
#include "tools/file/file_path.h"
#include "tools/file/search.h"

#define FILE_MAX (32u << 20) /* bytes: larger files are not searched */
#define READ_FIRST 65536
#define BINARY_LOOK 8192        /* a NUL among the first bytes: no text */
#define LINE_MAX_MATCHED 65536u /* bytes of a line that are searched */
#define LINE_SHOWN 500u         /* bytes of a line that are given */
#define STATUS_MS 500           /* between two words on how far it is */

/* ---- the pattern ---- */

/* Without these an expression is the text itself, which is found much faster. */
static bool has_meaning(const char *pattern)
{
    return pattern[strcspn(pattern, "\\^$.[]|()?*+{}")] != '\0';
}

static int compile(struct search *s, struct err *err)
{
    const struct file_seek *a = s->seek;
    const char *wrong, *pattern = a->pattern.s;
    s->pattern.plain = a->literal || !has_meaning(pattern);
    if (a->pattern.n == 0)
        return err_set(err, ERR_PARAMS, "Invalid parameters: pattern: is empty");
    if (strchr(pattern, '\n') && !a->multiline)
        return err_set(err, ERR_PARAMS,
                       "Invalid parameters: pattern: lines are searched one by one, but for multiline");
    if (s->pattern.plain) {
        buf_adds(&s->pattern.sought, pattern);
    } else {
        s->pattern.expression = expression_make(pattern, a->ignore_case, &wrong);
        if (!s->pattern.expression)
            return err_set(err, ERR_PARAMS,
                           "Invalid parameters: pattern: %s (POSIX extended syntax; or say literal)", wrong);
        search_text_of(pattern, &s->pattern.sought);
    }
    for (size_t i = 0; a->ignore_case && i < s->pattern.sought.len; i++)
        s->pattern.sought.data[i] = (char)tolower((unsigned char)s->pattern.sought.data[i]);
    s->pattern.text =
        (struct search_text){buf_str(&s->pattern.sought), s->pattern.sought.len, a->ignore_case};
    return 0;
}

/* Where the match begins; -1: there is none. */
static ptrdiff_t find_in(struct search *s, const char *line, size_t n)
{
    if (!s->pattern.plain)
        return expression_find(s->pattern.expression, line, n);
    const char *found = search_text_find(&s->pattern.text, line, n);
    return found ? found - line : -1;
}

/* ---- results ---- */

/* The part of a line around a match. */
static void put_line(struct buf *out, const char *key, const char *line, size_t n, size_t match)
{
    size_t from = match > LINE_SHOWN / 2 && n > LINE_SHOWN ? match - LINE_SHOWN / 2 : 0;
    while (from > 0 && from < n && ((unsigned char)line[from] & 0xC0) == 0x80)
        from--;
    if (n > from && line[n - 1] == '\r')
        n--;
    size_t len = n - from < LINE_SHOWN ? n - from : LINE_SHOWN;
    while (len > 0 && from + len < n && ((unsigned char)line[from + len] & 0xC0) == 0x80)
        len--;
    json_member_text(out, key, line + from, len);
    if (from > 0 || from + len < n)
        json_member_bool(out, "line_cut", true);
}

/* The lines `count` in front of `at` (a begin of a line), or behind, as one text. */
static void put_context(struct buf *out, const char *key, const char *from, const char *to)
{
    struct buf text BUF_AUTO = BUF_INIT;
    if (to <= from)
        return;
    for (const char *p = from; p < to;) {
        const char *end = memchr(p, '\n', (size_t)(to - p));
        size_t n = (size_t)((end ? end : to) - p);
        buf_add(&text, p, n < LINE_SHOWN ? n : LINE_SHOWN);
        buf_addc(&text, '\n');
        p += n + 1;
    }
    json_member_text(out, key, text.data, text.len);
}

static const char *lines_back(const char *begin, const char *at, long long count)
{
    while (count-- > 0 && at > begin) {
        const char *lf = memrchr(begin, '\n', (size_t)(at - 1 - begin));
        at = lf ? lf + 1 : begin;
    }
    return at;
}

static const char *lines_on(const char *at, const char *end, long long count)
{
    while (count-- > 0 && at < end) {
        const char *lf = memchr(at, '\n', (size_t)(end - at));
        at = lf ? lf + 1 : end;
    }
    return at;
}

struct place_of {
    const char *path, *line;
    size_t n, match;
    long long number; /* of the line; with `counts` of the lines */
};

static void put_match(const struct search *s, const struct place_of *p, struct buf *out)
{
    const char *begin = s->data.data, *end = begin + s->data.len;
    long long context = s->seek->context;
    buf_addc(out, '{');
    json_key(out, "path");
    file_put_below(out, s->start, p->path);
    json_member_int(out, s->seek->counts ? "count" : "line", p->number);
    if (!s->seek->counts)
        put_line(out, "text", p->line, p->n, p->match);
    if (context > 0 && !s->seek->counts) {
        const char *behind = p->line + p->n < end ? p->line + p->n + 1 : end;
        put_context(out, "before", lines_back(begin, p->line, context), p->line);
        put_context(out, "after", behind, lines_on(behind, end, context));
    }
    buf_addc(out, '}');
}

/* False: there is no room for it. */
static bool give(struct search *s, const struct place_of *p)
{
    s->full = s->left <= 0 || s->found.len > SEARCH_OUTPUT_MAX;
    s->left--;
    if (s->full)
        return false;
    size_t at = search_begin_match(s);
    put_match(s, p, &s->found);
    search_end_match(s, at);
    return true;
}

/* ---- one file ---- */

static bool is_late(struct search *s)
{
    long long now = now_ms();
    s->late = s->late || now > s->deadline_ms;
    if (now >= s->status_ms) {
        if (s->seek->tell)
            s->seek->tell(s->seek->arg, "files searched", s->files.searched);
        s->status_ms = now + STATUS_MS;
    }
    return s->late;
}

/* The next one from `from` on: where its lines begin and end, and in there it itself. False: there is none.
 */
static bool next_match(struct search *s, const char *from, struct place_of *p)
{
    const char *end = s->data.data + s->data.len;
    size_t n = (size_t)(end - from);
    ptrdiff_t at = find_in(s, from, n);
    if (at < 0)
        return false;
    const char *match = from + at, *last = s->pattern.plain
                                               ? match + s->pattern.text.n
                                               : from + expression_match_end(s->pattern.expression);
    const char *lf = memrchr(from, '\n', (size_t)at);
    p->line = lf ? lf + 1 : from;
    last -= last > match && last[-1] == '\n';
    lf = memchr(last, '\n', (size_t)(end - last));
    p->n = (size_t)((lf ? lf : end) - p->line);
    p->match = (size_t)(match - p->line);
    for (; from < p->line; p->number++)
        from = (const char *)memchr(from, '\n', (size_t)(p->line - from)) + 1;
    return true;
}

static bool search_text(struct search *s, const char *path, long long *count)
{
    const char *at = s->data.data, *end = at + s->data.len;
    struct place_of p = {.path = path, .number = 1};
    while (at < end && next_match(s, at, &p)) {
        ++*count;
        if ((!s->seek->counts && !give(s, &p)) || is_late(s))
            return false;
        at = p.line;
        for (const char *behind = p.line + p.n + 1; at < behind && at < end; p.number++) {
            const char *lf = memchr(at, '\n', (size_t)(end - at));
            at = lf ? lf + 1 : end;
        }
    }
    return true;
}

/* `end`: there is none any more. */
static const char *next_text(const struct search *s, const char *from, const char *end)
{
    const char *found =
        s->pattern.text.n == 0 ? from : search_text_find(&s->pattern.text, from, (size_t)(end - from));
    return found ? found : end;
}

static bool search_lines(struct search *s, const char *path, long long *count)
{
    char *begin = s->data.data, *end = begin + s->data.len;
    const char *text = begin; /* where the next one is that a match has */
    long long number = 1;
    for (char *line = begin; line < end; number++) {
        char *lf = memchr(line, '\n', (size_t)(end - line));
        size_t n = (size_t)((lf ? lf : end) - line), looked_at = n < LINE_MAX_MATCHED ? n : LINE_MAX_MATCHED;
        if (text < line)
            text = next_text(s, line, end);
        ptrdiff_t match = text < line + n || n == 0 ? find_in(s, line, looked_at) : -1;
        struct place_of p = {.path = path, .line = line, .n = n, .match = (size_t)match, .number = number};
        *count += match >= 0;
        if (match >= 0 && !s->seek->counts && !give(s, &p))
            return false;
        if (number % 256 == 0 && is_late(s))
            return false;
        line += n + 1;
    }
    return true;
}

/* True to go on with other files. */
static bool search_data(struct search *s, const char *path)
{
    long long count = 0;
    bool on = s->seek->multiline ? search_text(s, path, &count) : search_lines(s, path, &count);
    struct place_of p = {.path = path, .number = count};
    return s->seek->counts && count > 0 ? give(s, &p) && on : on;
}

/* The text that is sought, or that all matches have, is mostly in none of the lines. */
static bool may_match(const struct search *s)
{
    const char *end = s->data.data + s->data.len;
    return next_text(s, s->data.data, end) < end;
}

/* A short read is the end of a file, which saves another one. */
static int read_file(struct search *s, int fd)
{
    s->data.max = FILE_MAX;
    buf_reserve(&s->data, READ_FIRST);
    ssize_t n = read(fd, s->data.data, READ_FIRST);
    if (n <= 0)
        return (int)n;
    s->data.len = (size_t)n;
    s->data.data[n] = '\0';
    return n < READ_FIRST ? 0 : io_read_all(fd, &s->data);
}

/* `known`: it is a regular file, or was when its directory was read. */
static bool read_text(struct search *s, int dir, const char *name, bool known)
{
    struct stat st;
    int fd FD_AUTO =
        openat(dir, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (known ? O_NOFOLLOW : 0));
    buf_truncate(&s->data, 0);
    if (fd < 0 || (!known && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)))) {
        s->files.unreadable += fd < 0;
        return false;
    }
    if (read_file(s, fd) < 0) {
        s->files.large += errno == EFBIG;
        s->files.unreadable += errno != EFBIG;
        return false;
    }
    s->files.searched++;
    if (s->data.len == 0)
        return false;
    size_t look = s->data.len < BINARY_LOOK ? s->data.len : BINARY_LOOK;
    bool binary = search_text_find(&(struct search_text){.s = "", .n = 1}, s->data.data, look) != NULL;
    s->files.binary += binary;
    return !binary;
}

static bool search_file(struct search *s, int dir, const char *name, const char *path, bool known)
{
    if (is_late(s))
        return false;
    return !read_text(s, dir, name, known) || !may_match(s) || search_data(s, path);
}

static bool on_entry(void *arg, const struct walk_entry *e)
{
    struct search *s = arg;
    const struct file_seek *a = s->seek;
    if (e->type != WALK_FILE || (a->glob.s && !glob_match_file(a->glob.s, e->path, e->name)))
        return true;
    return !search_is_mine(s) || search_file(s, e->dir, e->name, e->path, true);
}

/* ---- the whole ---- */

static int search_all(struct search *s, const char *start, struct buf *answer, struct err *err)
{
    struct stat st;
    if (stat(start, &st) < 0)
        return file_fail(answer, err, errno, start);
    if (!S_ISDIR(st.st_mode)) {
        s->start = ".";
        search_file(s, AT_FDCWD, start, start, false);
        return 0;
    }
    return walk_run(&s->walk, start, err) < 0 ? file_fail(answer, err, errno, start) : 0;
}

static void put_end(const struct search *s, struct buf *out)
{
    buf_addc(out, ']');
    json_member_int(out, "files_searched", (long long)s->files.searched);
    json_member_int(out, "files_binary", (long long)s->files.binary);
    json_member_int(out, "files_too_large", (long long)s->files.large);
    json_member_int(out, "unreadable", (long long)s->files.unreadable);
    json_member_bool(out, "truncated", s->full || s->late);
    json_member_bool(out, "timed_out", s->late);
    buf_addc(out, '}');
}

/* 1: a process that had a share of it is lost. */
static int search(struct search *s, const char *start, bool alone, struct buf *answer, struct err *err)
{
    const struct file_seek *a = s->seek;
    s->left = a->limit;
    s->start = start;
    s->deadline_ms = now_ms() + (long long)(a->timeout * 1000);
    s->share = (struct search_share){.of = 1, .alone = alone};
    s->walk = file_walk_for(a, on_entry, s);
    if (search_all(s, start, answer, err) < 0)
        return -1;
    s->late = s->late || s->walk.late;
    s->files.unreadable += s->walk.unreadable;
    buf_adds(answer, "{\"matches\":[");
    if (search_gather(s, answer) < 0)
        return 1;
    put_end(s, answer);
    return 0;
}

int file_search(const void *request, struct buf *answer, struct err *err)
{
    const struct file_request *r = request;
    const struct file_seek *a = &r->seek;
    char *start MEM_AUTO = r->path.s && r->path.n > 0 ? file_path(&r->path) : mem_strdup(".");
    struct search s = {.seek = a, .data = BUF_INIT, .found = BUF_INIT, .pattern.sought = BUF_INIT};
    size_t before = answer->len;
    int rc = glob_check_all(a->exclude.list, a->exclude.n, "exclude", err);
    if (rc == 0 && a->glob.s)
        rc = glob_check_all((char *const *)&a->glob.s, 1, "glob", err);
    if (rc == 0)
        rc = compile(&s, err);
    if (rc == 0)
        rc = search(&s, start, false, answer, err);
    if (rc > 0) {
        buf_truncate(answer, before);
        buf_truncate(&s.found, 0);
        s.full = s.late = false;
        s.files = (struct search_files){0};
        rc = search(&s, start, true, answer, err);
    }
    expression_free(s.pattern.expression);
    buf_release(&s.pattern.sought);
    buf_release(&s.data);
    buf_release(&s.found);
    return rc;
}
