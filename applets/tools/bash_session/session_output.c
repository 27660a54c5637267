#include "session_output.h"

#include <stdlib.h>
#include <string.h>

#include "bash_session_types.h"
#include "mem.h"

#define AFTER_MAX 65536 /* longer than any prompt */

/* A front that is cut may not begin inside a character. */
static size_t skip_continuation(const char *s, size_t n, size_t from)
{
    while (from < n && ((unsigned char)s[from] & 0xC0) == 0x80)
        from++;
    return from;
}

static void put_notice(struct buf *out, unsigned long long omitted)
{
    buf_addf(out, "[%llu bytes omitted]\n", omitted);
}

/* ---- the stream ---- */

static void drop_front(struct output *o, size_t n)
{
    n = skip_continuation(o->text.data, o->text.len, n);
    size_t flying = n < o->in_flight ? n : o->in_flight;
    o->in_flight -= flying;
    o->lost_in_flight += flying;
    o->omitted += n - flying;
    buf_consume(&o->text, n);
}

void output_add(struct output *o, const char *s, size_t n)
{
    buf_add(&o->text, s, n);
    size_t max = memory_share(&o->share, o->text.len, (size_t)SESSION_OUTPUT_MAX);
    o->after_mark += n;
    /* Seldom, so that moving the rest costs little for each byte. */
    if (o->text.len > max + max / 4)
        drop_front(o, o->text.len - max);
}

static void cut(struct buf *b, size_t from, size_t n)
{
    memmove(b->data + from, b->data + from + n, b->len - from - n);
    buf_truncate(b, b->len - n);
}

void output_join_ends(struct output *o)
{
    size_t n = o->text.len;
    if (o->in_flight == 0 && n > 1 && memcmp(o->text.data + n - 2, "\n\n", 2) == 0)
        buf_truncate(&o->text, n - 1);
}

void output_mark(struct output *o)
{
    o->after_mark = 0;
    o->marked = true;
}

void output_forget_mark(struct output *o)
{
    o->marked = false;
}

void output_drop_prompt(struct output *o, const char *prompt, size_t n)
{
    size_t after = o->after_mark;
    if (!o->marked || o->in_flight > 0)
        return;
    o->marked = false;
    if (after == 0 || after > o->text.len)
        return; /* read already */
    const char *at = o->text.data + o->text.len - after;
    if (n == 0 && !memchr(at, '\n', after))
        n = after;
    else if (n == 0 || after < n || memcmp(at, prompt, n) != 0)
        return;
    cut(&o->text, o->text.len - after, n);
}

void output_put_back(struct output *o, const char *s, size_t n)
{
    struct buf joined = BUF_INIT;
    buf_add(&joined, s, n);
    buf_add(&joined, o->text.data, o->text.len);
    buf_release(&o->text);
    o->text = joined;
}

void output_answer(struct output *o, size_t max, struct buf *out)
{
    struct buf notice BUF_AUTO = BUF_INIT;
    size_t len = o->text.len, from = 0;
    o->in_flight = len;
    o->omitted_in_flight = o->lost_in_flight = o->untold_in_flight = 0;
    if (len > max || o->omitted > 0) {
        put_notice(&notice, o->omitted + len); /* at its longest */
        bool told = notice.len < max;
        size_t room = told ? max - notice.len : max;
        from = len > room ? skip_continuation(o->text.data, len, len - room) : 0;
        if (told) {
            put_notice(out, o->omitted + from);
            o->omitted_in_flight = o->omitted;
        } else {
            o->untold_in_flight = from;
        }
    }
    if (len > from)
        buf_add(out, o->text.data + from, len - from);
}

void output_delivered(struct output *o, bool delivered)
{
    if (delivered) {
        buf_consume(&o->text, o->in_flight);
        o->omitted = o->omitted - o->omitted_in_flight + o->untold_in_flight;
        buf_shrink(&o->text);
    } else {
        o->omitted += o->lost_in_flight;
    }
    o->in_flight = 0;
    o->omitted_in_flight = o->lost_in_flight = o->untold_in_flight = 0;
}

void output_release(struct output *o)
{
    buf_release(&o->text);
    *o = (struct output){.text = BUF_INIT};
}

/* ---- one run ---- */

struct capture *capture_new(size_t max)
{
    struct capture *c = mem_zalloc(sizeof *c);
    c->max = max;
    buf_init(&c->head, BUF_NO_MAX);
    buf_init(&c->tail, BUF_NO_MAX);
    buf_init(&c->after, BUF_NO_MAX);
    return c;
}

static void keep(struct capture *c, const char *s, size_t n)
{
    size_t held = c->head.len + c->tail.len + n;
    size_t max = memory_share(&c->share, held, c->max), half = max / 2;
    if (held < MEMORY_SHARE_LEAST && max < c->max)
        half = max; /* how much it may be is not known yet, only that it may be this */
    size_t room = c->head.len < half ? half - c->head.len : 0;
    if (c->omitted == 0 && c->tail.len == 0 && room > 0 && n > 0) {
        size_t len = n < room ? n : room;
        if (len < n) /* the whole last character goes to the tail */
            while (len > 0 && ((unsigned char)s[len] & 0xC0) == 0x80)
                len--;
        buf_add(&c->head, s, len);
        s += len;
        n -= len;
    }
    buf_add(&c->tail, s, n);
    size_t limit = max - half;
    if (c->tail.len > limit + limit / 4 + 4096) {
        size_t cut = skip_continuation(c->tail.data, c->tail.len, c->tail.len - limit);
        c->omitted += cut;
        buf_consume(&c->tail, cut);
    }
}

void capture_add(struct capture *c, const char *s, size_t n)
{
    if (!c->marked) {
        keep(c, s, n);
        return;
    }
    buf_add(&c->after, s, n);
    if (c->after.len > AFTER_MAX)
        capture_commit(c);
}

void capture_commit(struct capture *c)
{
    keep(c, c->after.data, c->after.len);
    buf_release(&c->after);
    c->marked = false;
}

void capture_drop_key(struct capture *c, const char *path)
{
    struct buf *b = &c->after;
    char *trace = b->len > 0 ? memmem(b->data, b->len, path, strlen(path)) : NULL;
    if (trace) {
        char *line = memrchr(b->data, '\n', (size_t)(trace - b->data));
        size_t from = line ? (size_t)(line + 1 - b->data) : 0;
        char *end = memchr(trace, '\n', b->len - (size_t)(trace - b->data));
        if (b->data[from] == '+')
            cut(b, from, (end ? (size_t)(end + 1 - b->data) : b->len) - from);
    }
    char *end = b->len > 0 ? memchr(b->data, '\n', b->len) : NULL;
    if (end) {
        size_t n = end > b->data && end[-1] == '\r' ? 2 : 1;
        cut(b, (size_t)(end + 1 - b->data) - n, n);
    }
}

void capture_strip(struct capture *c, const char *text, size_t n)
{
    struct buf *last = c->tail.len > 0 ? &c->tail : &c->head;
    if (n > 0 && last->len >= n && memcmp(last->data + last->len - n, text, n) == 0)
        buf_truncate(last, last->len - n);
}

void capture_hold(struct capture *c, const char *text, size_t n)
{
    size_t before = c->head.len + c->tail.len;
    capture_strip(c, text, n);
    if (c->head.len + c->tail.len == before)
        return;
    capture_mark(c);
    capture_add(c, text, n);
}

void capture_mark(struct capture *c)
{
    capture_commit(c);
    c->marked = true;
}

#define NOTICE_MAX ((size_t)40) /* with its line ends */

static bool is_whole(const struct capture *c)
{
    return c->omitted == 0 && c->head.len + c->tail.len <= c->max;
}

/* A cap that is too small for a line that tells has none: omitted_bytes tells as well. */
static bool has_notice(const struct capture *c)
{
    return !is_whole(c) && c->max - c->head.len >= 2 * NOTICE_MAX;
}

/* Of the tail, what would pass max. */
static size_t excess(const struct capture *c)
{
    size_t limit = c->max - c->head.len - (has_notice(c) ? NOTICE_MAX : 0);
    if (is_whole(c) || c->tail.len <= limit)
        return 0;
    return skip_continuation(c->tail.data, c->tail.len, c->tail.len - limit);
}

unsigned long long capture_omitted(const struct capture *c)
{
    return c->omitted_before + c->omitted + excess(c);
}

void capture_text(const struct capture *c, struct buf *out)
{
    size_t from = excess(c);
    buf_add(out, c->head.data, c->head.len);
    if (has_notice(c)) {
        buf_adds(out, "\n");
        put_notice(out, c->omitted + from);
    }
    if (c->tail.len > from)
        buf_add(out, c->tail.data + from, c->tail.len - from);
}

void capture_drop_text(struct capture *c)
{
    buf_release(&c->head);
    buf_release(&c->tail);
    c->omitted = c->omitted_before = 0;
}

/* Takes its text anew, with other text in front. Where something was left out the rest of the head would come
 * to lie behind that place. */
static void rebuild(struct capture *c, const char *front, size_t n)
{
    struct buf head BUF_AUTO = c->head, tail BUF_AUTO = c->tail;
    unsigned long long omitted = c->omitted;
    c->head = c->tail = (struct buf){.max = BUF_NO_MAX};
    c->omitted = 0;
    keep(c, front, n);
    keep(c, head.data, head.len);
    if (omitted > 0) {
        c->omitted += omitted + c->tail.len;
        buf_release(&c->tail);
    }
    keep(c, tail.data, tail.len);
}

void capture_put_front(struct capture *c, const char *s, size_t n, unsigned long long omitted)
{
    c->omitted_before += omitted;
    rebuild(c, s, n);
}

void capture_resize(struct capture *c, size_t max)
{
    c->max = max;
    rebuild(c, NULL, 0);
}

void capture_free(struct capture *c)
{
    if (!c)
        return;
    buf_release(&c->head);
    buf_release(&c->tail);
    buf_release(&c->after);
    free(c);
}
