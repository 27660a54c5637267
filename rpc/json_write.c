/* Writing JSON. Strings go out in stretches that need no escape, so the cost is that of copying. */
#include "json.h"

#include <string.h>

#include "json_plain.h"
#include "utf8.h"

/* The letter behind the backslash; 0: there is none, it goes by its number. */
static char escape_of(unsigned char c)
{
    static const char special[] = "\"\\\b\f\n\r\t", letter[] = "\"\\bfnrt";
    const char *found = c ? strchr(special, c) : NULL;
    return found ? letter[found - special] : '\0';
}

static void put_escape(struct buf *out, unsigned char c)
{
    static const char hex[] = "0123456789abcdef";
    char letter = escape_of(c);
    if (letter)
        buf_add(out, (char[]){'\\', letter}, 2);
    else
        buf_add(out, (char[]){'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]}, 6);
}

size_t json_string_len(const char *s, size_t n)
{
    size_t len = 0;
    for (size_t i = 0; i < n;) {
        size_t run = json_plain_run(s + i, n - i, false);
        len += run;
        i += run;
        if (i < n)
            len += escape_of((unsigned char)s[i++]) ? 2 : 6;
    }
    return len;
}

void json_put_string(struct buf *out, const char *s, size_t n)
{
    buf_addc(out, '"');
    for (size_t i = 0; i < n;) {
        size_t run = json_plain_run(s + i, n - i, false);
        utf8_clean(out, s + i, run, true);
        i += run;
        if (i < n)
            put_escape(out, (unsigned char)s[i++]);
    }
    buf_addc(out, '"');
}

void json_put_shown(struct buf *out, struct span json)
{
    for (size_t i = 0; i < json.n; i++) {
        size_t run = utf8_printable(json.s + i, json.n - i);
        buf_add(out, json.s + i, run);
        i += run;
        unsigned char c = i < json.n ? (unsigned char)json.s[i] : '\0';
        bool c1 = c == 0xC2 && i + 1 < json.n && (unsigned char)json.s[i + 1] < 0xA0;
        if (c1 || c == 0x7F)
            put_escape(out, (unsigned char)json.s[i += c1]);
        else if (i < json.n)
            buf_addc(out, c < ' ' ? ' ' : (char)c);
    }
}

void json_puts(struct buf *out, const char *s)
{
    json_put_string(out, s, strlen(s));
}

void json_key(struct buf *out, const char *key)
{
    /* No value ends with an opening brace, so where there is one, this is the first member. */
    if (out->len > 0 && out->data[out->len - 1] != '{')
        buf_addc(out, ',');
    json_puts(out, key);
    buf_addc(out, ':');
}

void json_put_int(struct buf *out, long long value)
{
    buf_addf(out, "%lld", value);
}

void json_put_bool(struct buf *out, bool value)
{
    buf_adds(out, value ? "true" : "false");
}

void json_member_string(struct buf *out, const char *key, const char *s)
{
    json_key(out, key);
    if (s)
        json_puts(out, s);
    else
        buf_adds(out, "null");
}

void json_member_text(struct buf *out, const char *key, const char *s, size_t n)
{
    json_key(out, key);
    json_put_string(out, s, n);
}

void json_member_int(struct buf *out, const char *key, long long value)
{
    json_key(out, key);
    json_put_int(out, value);
}

void json_member_int_or_null(struct buf *out, const char *key, long long value)
{
    json_key(out, key);
    if (value < 0)
        buf_adds(out, "null");
    else
        json_put_int(out, value);
}

void json_member_bool(struct buf *out, const char *key, bool value)
{
    json_key(out, key);
    json_put_bool(out, value);
}

void json_member_seconds(struct buf *out, const char *key, long long ms)
{
    json_key(out, key);
    buf_addf(out, "%lld.%03lld", ms / 1000, ms % 1000);
}
