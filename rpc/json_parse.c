/* Decoding: strings by themselves, and whole values by cJSON. */
#include "json.h"

#include <cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "mem.h"
#include "utf8.h"

static unsigned hex4(const char *s)
{
    unsigned value = 0;
    for (int i = 0; i < 4; i++) {
        char c = s[i];
        unsigned digit = c <= '9' ? (unsigned)(c - '0') : ((unsigned)(c | 0x20) - 'a') + 10;
        value = value << 4 | (digit & 0xF);
    }
    return value;
}

enum { LONE_SURROGATE = 0x110000 };

/* What the \u escape at s stands for, a pair of surrogates as one; returns its length. */
static size_t escape_u(const char *s, size_t n, unsigned *code_point)
{
    unsigned first = n >= 6 ? hex4(s + 2) : 0xFFFD;
    *code_point = first;
    if (first < 0xD800 || first > 0xDFFF)
        return n < 6 ? n : 6;
    *code_point = LONE_SURROGATE;
    if (first > 0xDBFF || n < 12 || s[6] != '\\' || s[7] != 'u')
        return 6;
    unsigned second = hex4(s + 8);
    if (second < 0xDC00 || second > 0xDFFF)
        return 6;
    *code_point = 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
    return 12;
}

/* Appends what the escape at s stands for; returns its length. */
static size_t decode_escape(struct buf *out, const char *s, size_t n)
{
    static const char letters[] = "bfnrt", meaning[] = "\b\f\n\r\t";
    if (s[1] == 'u') {
        unsigned code_point;
        size_t len = escape_u(s, n, &code_point);
        utf8_put(out, code_point == LONE_SURROGATE ? 0xFFFD : code_point);
        return len;
    }
    const char *letter = strchr(letters, s[1]);
    buf_addc(out, letter ? meaning[letter - letters] : s[1]);
    return 2;
}

bool json_string_text(struct span value, struct buf *out)
{
    if (value.n < 2 || value.s[0] != '"')
        return false;
    const char *s = value.s + 1, *end = value.s + value.n - 1;
    while (s < end) {
        const char *escape = memchr(s, '\\', (size_t)(end - s));
        const char *stop = escape ? escape : end;
        buf_add(out, s, (size_t)(stop - s));
        s = stop;
        if (escape && end - s >= 2)
            s += decode_escape(out, s, (size_t)(end - s));
        else if (escape)
            break;
    }
    return true;
}

bool json_string_is(struct span value, const char *text)
{
    if (value.n < 2 || value.s[0] != '"')
        return false;
    if (!memchr(value.s, '\\', value.n))
        return span_is((struct span){value.s + 1, value.n - 2}, text);
    if (value.n - 2 > 6 * strlen(text)) /* no escape is longer than six bytes for one */
        return false;
    struct buf decoded BUF_AUTO = BUF_INIT;
    json_string_text(value, &decoded);
    return span_is(span_of(&decoded), text);
}

/* ---- what cJSON is given ---- */

static const char NUL_SIGN[] = "\xC0\x80";      /* stands for a NUL in a string */
static const char HALF_SIGN[] = "\xC0\x81\x81"; /* for half of a surrogate pair; as long as U+FFFD */
static const char NUMBER_SIGN = '\xFF';         /* starts a string that stands for a number */

/* Copies the string at s (from its opening quote) with the escapes replaced that cJSON doesn't take well. */
static size_t put_string(struct buf *out, const char *s, size_t n)
{
    size_t i = 1, start = 0;
    while (i < n && s[i] != '"') {
        if (s[i] != '\\') {
            i++;
            continue;
        }
        unsigned code_point = 1;
        size_t len = i + 1 < n && s[i + 1] == 'u' ? escape_u(s + i, n - i, &code_point) : 2;
        if (code_point == 0 || code_point == LONE_SURROGATE) {
            buf_add(out, s + start, i - start);
            buf_adds(out, code_point == 0 ? NUL_SIGN : HALF_SIGN);
            start = i + len;
        }
        i += len;
    }
    if (i >= n)
        return n;
    buf_add(out, s + start, i + 1 - start);
    return i + 1;
}

static size_t put_number(struct buf *out, const char *s, size_t n)
{
    size_t len = 0;
    while (len < n && s[len] && strchr("+-.0123456789eE", s[len]))
        len++;
    buf_addc(out, '"');
    buf_addc(out, NUMBER_SIGN);
    buf_add(out, s, len);
    buf_addc(out, '"');
    return len;
}

/* -1 when there are too many values: strings that are no keys, numbers, literals and brackets that open. */
static int normalise(struct buf *out, struct span text)
{
    size_t nodes = 0;
    for (size_t at = 0; at < text.n;) {
        const char *s = text.s + at;
        char c = *s;
        if (c == '"') {
            at += put_string(out, s, text.n - at);
        } else if (c == '-' || (c >= '0' && c <= '9')) {
            at += put_number(out, s, text.n - at);
        } else {
            at++;
            if (c == ' ' || c == '\n' || c == '\r' || c == '\t')
                continue;
            buf_addc(out, c);
            if (c == ':')
                nodes--; /* what was before it was a key */
            if (!strchr("{[tfn", c))
                continue;
        }
        if (++nodes > JSON_NODES_MAX)
            return -1;
    }
    return 0;
}

struct cJSON *json_parse(struct span text)
{
    static cJSON_Hooks hooks = {mem_alloc, free};
    struct buf normal BUF_AUTO = BUF_INIT;
    buf_reserve(&normal, text.n);
    if (normalise(&normal, text) < 0)
        return NULL;
    cJSON_InitHooks(&hooks);
    return cJSON_ParseWithLength(buf_str(&normal), normal.len + 1);
}

/* ---- what comes back ---- */

const char *json_number(const struct cJSON *node)
{
    const char *text = cJSON_GetStringValue(node);
    return text && text[0] == NUMBER_SIGN ? text + 1 : NULL;
}

bool json_has_half_pair(const struct cJSON *node)
{
    const char *text = cJSON_GetStringValue(node);
    return (text && strstr(text, HALF_SIGN)) || (node->string && strstr(node->string, HALF_SIGN));
}

/* Takes *text away from its node and puts the NULs back. */
static char *take_text(char **text, size_t *len)
{
    char *s = *text, *to = s, *half = s;
    *text = NULL;
    while ((half = strstr(half, HALF_SIGN)) != NULL)
        memcpy(half, UTF8_REPLACEMENT, sizeof HALF_SIGN - 1);
    for (const char *from = s; *from;) {
        bool nul = from[0] == NUL_SIGN[0] && from[1] == NUL_SIGN[1];
        *to++ = nul ? '\0' : *from;
        from += nul ? 2 : 1;
    }
    *to = '\0';
    *len = (size_t)(to - s);
    return s;
}

char *json_take_string(struct cJSON *node, size_t *len)
{
    const char *text = cJSON_GetStringValue(node);
    return text && text[0] != NUMBER_SIGN ? take_text(&node->valuestring, len) : NULL;
}

char *json_take_key(struct cJSON *node, size_t *len)
{
    return node->string ? take_text(&node->string, len) : NULL;
}
