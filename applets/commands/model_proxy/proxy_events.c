#include "proxy_events.h"

#include <stdlib.h>
#include <string.h>

#include "mem.h"

/* A provider's pieces are a few words long. Of a long text they are longer, since nobody reads along and each
 * brings two hundred bytes of event with it. */
#define PIECE_BYTES 48
#define PIECES_MAX 512

#define COPY_BELOW 256 /* a shorter span is copied: that is less than what is kept about a part */

struct events_part {
    size_t at;        /* where in the text it goes */
    size_t len;       /* of a run: of the text there, which is said for each piece; else 0 */
    struct span span; /* what goes there; of a run: the inside of the string */
    bool copied;      /* the span begins copy_at bytes into e->copies */
    size_t copy_at;
};

void events_init(struct events *e)
{
    *e = (struct events){.number = 0};
    buf_init(&e->answer, BUF_NO_MAX);
    buf_init(&e->text, BUF_NO_MAX);
    buf_init(&e->copies, BUF_NO_MAX);
}

void events_release(struct events *e)
{
    buf_release(&e->answer);
    buf_release(&e->text);
    buf_release(&e->copies);
    free(e->parts);
    events_init(e);
}

static void add_part(struct events *e, struct events_part part)
{
    if (e->n == e->cap) {
        e->cap = e->cap ? 2 * e->cap : 16;
        e->parts = mem_realloc(e->parts, e->cap * sizeof *e->parts);
    }
    e->parts[e->n++] = part;
}

void events_put(struct events *e, struct span span)
{
    if (span.n < COPY_BELOW)
        buf_add(&e->text, span.s, span.n);
    else
        add_part(e, (struct events_part){.at = e->text.len, .span = span});
}

void events_run(struct events *e, size_t from, struct span string)
{
    struct span inside = {string.s + 1, string.n - 2};
    if (inside.n == 0)
        buf_truncate(&e->text, from);
    else
        add_part(e, (struct events_part){.at = from, .len = e->text.len - from, .span = inside});
}

void events_run_copy(struct events *e, size_t from, struct span string)
{
    size_t parts = e->n, at = e->copies.len;
    events_run(e, from, string);
    if (e->n == parts)
        return;
    buf_add(&e->copies, string.s + 1, string.n - 2);
    e->parts[parts].copied = true;
    e->parts[parts].copy_at = at;
}

void events_put_object(struct events *e, struct span object, const char *const *names, const char *members)
{
    struct span key, value;
    const char *comma = "";
    if (json_kind(object) != JSON_OBJECT) { /* nonsense of the model's side: said as it is */
        events_put(e, object);
        return;
    }
    buf_addc(&e->text, '{');
    for (size_t at = 0; json_next_member(object, &at, &key, &value);) {
        const char *const *name = names;
        while (*name && !json_string_is(key, *name))
            name++;
        if (*name)
            continue;
        buf_adds(&e->text, comma);
        events_put(e, key);
        buf_addc(&e->text, ':');
        events_put(e, value);
        comma = ",";
    }
    if (*members)
        buf_adds(&e->text, comma);
    buf_adds(&e->text, members);
    buf_addc(&e->text, '}');
}

/* ---- pieces ---- */

static bool is_surrogate(const char *s, size_t n, const char *second)
{
    return n >= 6 && s[0] == '\\' && s[1] == 'u' && (s[2] | 0x20) == 'd' && strchr(second, s[3] | 0x20);
}

/* Length of what must not be cut: an escape, a pair of them that is one character, a character in UTF-8. */
static size_t unit(const char *s, size_t n)
{
    unsigned char c = (unsigned char)*s;
    size_t len = 1;
    if (c == '\\' && n > 1 && s[1] == 'u')
        len = is_surrogate(s, n, "89ab") && is_surrogate(s + 6, n - 6, "cdef") ? 12 : 6;
    else if (c == '\\')
        len = 2;
    else if (c >= 0xC0)
        len = c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : 2;
    return len < n ? len : n;
}

static size_t piece_length(struct span whole, size_t at)
{
    size_t want = whole.n / PIECES_MAX > PIECE_BYTES ? whole.n / PIECES_MAX : PIECE_BYTES;
    size_t len = 0;
    while (len < want && at + len < whole.n)
        len += unit(whole.s + at + len, whole.n - at - len);
    return len;
}

/* ---- making it ---- */

/* Appends text with its numbers, and the piece, filled in. */
static void fill_in(struct events *e, struct buf *out, const char *text, size_t n, struct span piece)
{
    for (size_t i = 0; i < n;) {
        const char *mark = memchr(text + i, EVENTS_NUMBER[0], n - i);
        const char *hole = piece.s ? memchr(text + i, EVENTS_PIECE[0], n - i) : NULL;
        const char *end = hole && (!mark || hole < mark) ? hole : mark ? mark : text + n;
        buf_add(out, text + i, (size_t)(end - text) - i);
        i = (size_t)(end - text);
        if (i < n && end == hole) {
            buf_addc(out, '"');
            buf_add(out, piece.s, piece.n);
            buf_addc(out, '"');
        } else if (i < n) {
            buf_addf(out, "%llu", e->number++);
        }
        i++;
    }
}

/* One step: the text up to the next part, a piece of a run, some of a span. */
static void make_some(struct events *e, struct buf *out, size_t want)
{
    const struct events_part *part = e->at_part < e->n ? &e->parts[e->at_part] : NULL;
    size_t end = part ? part->at : e->text.len;
    if (!part || e->at_text < end) {
        fill_in(e, out, buf_str(&e->text) + e->at_text, end - e->at_text, (struct span){0});
        e->at_text = end;
        return;
    }
    struct span span = part->span;
    if (part->copied)
        span.s = e->copies.data + part->copy_at;
    size_t left = span.n - e->at_span;
    size_t n = part->len > 0 ? piece_length(span, e->at_span) : left < want ? left : want;
    struct span piece = {span.s + e->at_span, n};
    if (part->len > 0)
        fill_in(e, out, e->text.data + part->at, part->len, piece);
    else
        buf_add(out, piece.s, piece.n);
    e->at_span += n;
    if (e->at_span == span.n) {
        e->at_text += part->len;
        e->at_span = 0;
        e->at_part++;
    }
}

bool events_next(struct events *e, struct buf *out, size_t want)
{
    size_t before = out->len;
    while (out->len - before < want && (e->at_part < e->n || e->at_text < e->text.len))
        make_some(e, out, want);
    return out->len > before;
}
