#include "edit_encoding.h"

#include <string.h>
#include <strings.h>

#include "edit_text.h"
#include "utf8.h"

/* Those from 0x80 to 0x9F; 0: the control character of that number. */
static const unsigned short cp1252[32] = {0x20AC, 0,      0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021,
                                          0x02C6, 0x2030, 0x0160, 0x2039, 0x0152, 0,      0x017D, 0,
                                          0,      0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014,
                                          0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0,      0x017E, 0x0178};

static const struct {
    const char *name;
    enum encoding encoding;
} names[] = {
    {"utf-8", ENCODING_UTF_8},         {"utf8", ENCODING_UTF_8},         {"utf-16", ENCODING_UTF_16LE},
    {"utf16", ENCODING_UTF_16LE},      {"utf-16le", ENCODING_UTF_16LE},  {"utf-16-le", ENCODING_UTF_16LE},
    {"utf-16be", ENCODING_UTF_16BE},   {"utf-16-be", ENCODING_UTF_16BE}, {"cp1252", ENCODING_CP1252},
    {"windows-1252", ENCODING_CP1252}, {"latin-1", ENCODING_LATIN_1},    {"latin1", ENCODING_LATIN_1},
    {"iso-8859-1", ENCODING_LATIN_1},
};

static int find(const struct text *name, enum encoding *encoding, struct err *err)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcasecmp(names[i].name, name->s) == 0 && strlen(name->s) == name->n) {
            *encoding = names[i].encoding;
            return 0;
        }
    return err_set(err, ERR_PARAMS, "Invalid parameters: encoding: must be " ENCODING_NAMES);
}

bool encoding_is(const struct text *name)
{
    enum encoding e;
    return find(name, &e, NULL) == 0;
}

static bool is_wide(enum encoding e)
{
    return e == ENCODING_UTF_16LE || e == ENCODING_UTF_16BE;
}

/* ---- to UTF-8 ---- */

/* Also half of a pair of UTF-16 that stands alone, which shows as no UTF-8 and comes back as it was. */
static void put_point(struct buf *out, unsigned c)
{
    if (c >= 0xD800 && c < 0xE000)
        buf_add(out, (char[]){(char)0xED, (char)(0x80 | (c >> 6 & 0x3F)), (char)(0x80 | (c & 0x3F))}, 3);
    else
        utf8_put(out, c);
}

static unsigned unit_at(enum encoding e, const char *s)
{
    const unsigned char *b = (const unsigned char *)s;
    return e == ENCODING_UTF_16LE ? (unsigned)(b[0] | b[1] << 8) : (unsigned)(b[0] << 8 | b[1]);
}

static void get_wide(enum encoding e, const char *s, size_t n, struct buf *out)
{
    for (size_t i = 0; i + 1 < n; i += 2) {
        unsigned c = unit_at(e, s + i), low = i + 3 < n ? unit_at(e, s + i + 2) : 0;
        if (c >= 0xD800 && c < 0xDC00 && low >= 0xDC00 && low < 0xE000) {
            c = 0x10000 + ((c & 0x3FF) << 10 | (low & 0x3FF));
            i += 2;
        }
        put_point(out, c);
    }
}

static void get_narrow(enum encoding e, const char *s, size_t n, struct buf *out)
{
    for (size_t i = 0; i < n; i++) {
        unsigned c = (unsigned char)s[i];
        if (e == ENCODING_CP1252 && c >= 0x80 && c < 0xA0 && cp1252[c - 0x80])
            c = cp1252[c - 0x80];
        utf8_put(out, c);
    }
}

/* ---- and back ---- */

/* The character at s, and its bytes: 0 where there is none. */
static int point_at(const char *s, size_t n, unsigned *c)
{
    int length = utf8_char(s, n);
    if (length > 0) {
        *c = utf8_code_point(s, length);
        return length;
    }
    if (n < 3 || (unsigned char)s[0] != 0xED || ((unsigned char)s[1] & 0xE0) != 0xA0)
        return 0;
    *c = 0xD000U | (unsigned)(s[1] & 0x3F) << 6 | (unsigned)(s[2] & 0x3F);
    return 3;
}

static void put_unit(enum encoding e, unsigned u, struct buf *out)
{
    char high = (char)(u >> 8), low = (char)u;
    buf_add(out, e == ENCODING_UTF_16LE ? (char[]){low, high} : (char[]){high, low}, 2);
}

static bool put_narrow(enum encoding e, unsigned c, struct buf *out)
{
    for (unsigned i = 0; e == ENCODING_CP1252 && i < 32; i++)
        if (cp1252[i] == c)
            return buf_addc(out, (char)(0x80 + i)) == 0;
    bool other = e == ENCODING_CP1252 && c >= 0x80 && c < 0xA0 && cp1252[c - 0x80];
    return c < 0x100 && !other && buf_addc(out, (char)c) == 0;
}

/* Appends it; the character that can't be, as its bytes and their number, in *bad, or 0. */
static size_t encode(enum encoding e, const char *s, size_t n, struct buf *out, const char **bad)
{
    for (size_t i = 0; i < n;) {
        unsigned c = 0;
        int length = point_at(s + i, n - i, &c);
        *bad = s + i;
        if (length == 0)
            return 1;
        if (is_wide(e) && c >= 0x10000) {
            put_unit(e, 0xD800 | (c - 0x10000) >> 10, out);
            put_unit(e, 0xDC00 | (c & 0x3FF), out);
        } else if (is_wide(e)) {
            put_unit(e, c, out);
        } else if (!put_narrow(e, c, out)) {
            return (size_t)length;
        }
        i += (size_t)length;
    }
    return 0;
}

static const char *name_of(enum encoding e)
{
    static const char *const of[] = {"UTF-8", "UTF-16", "UTF-16", "cp1252", "latin-1"};
    return of[e];
}

static int put(enum encoding e, const char *s, size_t n, struct buf *out, const char *shown, struct err *err)
{
    const char *bad;
    size_t length = encode(e, s, n, out, &bad);
    if (length == 0)
        return 0;
    return err_set(
        err, ERR_TOOL,
        "Nothing was changed: %s is in %s, which has no '%.*s'; leave that out, or write the file anew in "
        "another encoding (`create` with `overwrite` and `encoding`)",
        shown, name_of(e), (int)length, bad);
}

/* ---- the whole ---- */

void coded_release(struct coded *c)
{
    buf_release(&c->own);
}

static size_t mark_of(const struct buf *data, enum encoding *e)
{
    if (data->len < 2)
        return 0;
    if (memcmp(data->data, "\xFF\xFE", 2) == 0)
        *e = ENCODING_UTF_16LE;
    else if (memcmp(data->data, "\xFE\xFF", 2) == 0)
        *e = ENCODING_UTF_16BE;
    else
        return 0;
    return 2;
}

int coded_take(struct coded *c, const struct buf *data, const struct text *name, const char *shown,
               struct err *err)
{
    enum encoding marked = ENCODING_UTF_8, wanted = ENCODING_UTF_8;
    *c = (struct coded){.own = BUF_INIT, .text = data};
    if (name && name->s && find(name, &wanted, err) < 0)
        return -1;
    size_t mark = mark_of(data, &marked);
    c->encoding = name && name->s ? wanted : marked;
    if (is_wide(c->encoding) && mark > 0) {
        c->encoding = marked;
        c->mark = mark;
    }
    if (c->encoding == ENCODING_UTF_8)
        return 0;
    if (is_wide(c->encoding) && data->len % 2 != 0) {
        if (name && name->s)
            return err_set(err, ERR_TOOL, "%s is no UTF-16: it has an odd number of bytes", shown);
        c->encoding = ENCODING_UTF_8;
        c->mark = 0;
        return 0;
    }
    if (is_wide(c->encoding))
        get_wide(c->encoding, buf_str(data) + c->mark, data->len - c->mark, &c->own);
    else
        get_narrow(c->encoding, buf_str(data), data->len, &c->own);
    c->text = &c->own;
    return 0;
}

/* Bytes of the content that so much of the text is. */
static size_t bytes_of(const struct coded *c, const char *s, size_t n)
{
    size_t bytes = 0;
    for (size_t i = 0; i < n; i++) /* each character where it begins; those of four bytes are two units */
        if (((unsigned char)s[i] & 0xC0) != 0x80)
            bytes += !is_wide(c->encoding) ? 1 : (unsigned char)s[i] >= 0xF0 ? 4 : 2;
    return bytes;
}

int coded_splice(const struct coded *c, struct splice *s, struct buf *into, const char *shown,
                 struct err *err)
{
    const char *text = buf_str(c->text);
    if (c->encoding == ENCODING_UTF_8)
        return 0;
    if (put(c->encoding, s->put, s->n_put, into, shown, err) < 0)
        return -1;
    *s = (struct splice){.at = c->mark + bytes_of(c, text, s->at),
                         .cut = bytes_of(c, text + s->at, s->cut),
                         .put = buf_str(into),
                         .n_put = into->len};
    return 0;
}

struct splice coded_difference(const struct coded *c, const struct buf *now)
{
    const char *old = buf_str(c->text), *new = buf_str(now);
    size_t n = c->text->len, shorter = n < now->len ? n : now->len;
    size_t head = text_common_prefix(old, new, shorter);
    while (head > 0 && head < shorter && ((unsigned char)old[head] & 0xC0) == 0x80)
        head--;
    size_t tail = text_common_suffix(old + n, new + now->len, shorter - head);
    while (tail > 0 && ((unsigned char)old[n - tail] & 0xC0) == 0x80)
        tail--;
    return (struct splice){
        .at = head, .cut = n - head - tail, .put = new + head, .n_put = now->len - head - tail};
}

int encoding_put(const struct text *name, const char *s, size_t n, struct buf *out, const char *shown,
                 struct err *err)
{
    enum encoding e = ENCODING_UTF_8;
    if (name->s && find(name, &e, err) < 0)
        return -1;
    if (e == ENCODING_UTF_8)
        return buf_add(out, s, n);
    if (name->n <= strlen("utf-16") && is_wide(e))
        buf_adds(out, "\xFF\xFE");
    return put(e, s, n, out, shown, err);
}
