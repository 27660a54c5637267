#include "term_filter.h"

#include <stdbool.h>
#include <string.h>

#include "buf.h"
#include "utf8.h"

enum state {
    GROUND,
    ESCAPE,       /* behind ESC */
    INTERMEDIATE, /* ESC with intermediate bytes: until the final one, whatever that means alone */
    CSI,          /* ESC [ */
    STRING,       /* ESC ] P X ^ _ k: until BEL or ESC \ */
    STRING_ESCAPE /* ESC inside a string */
};

#define ESC 0x1B

static bool is_text(unsigned char c)
{
    return (c >= 0x20 && c < 0x7F) || c == '\t' || c == '\n' || c == '\r';
}

/* Behind ESC. Returns the next state; *again when c is not part of the sequence. */
static enum state escape(unsigned char c, bool *again)
{
    if (c >= 0x20 && c <= 0x2F)
        return INTERMEDIATE;
    if (c == '[')
        return CSI;
    if (c < 0x80 && c != 0 && strchr("]PX^_k", c))
        return STRING;
    if (c == ESC)
        return ESCAPE;
    *again = c < 0x20 || c >= 0x7F;
    return GROUND;
}

/* Inside a sequence that goes on until a byte from `final` to 0x7E; what is no byte of any sequence breaks it
 * off. */
static enum state sequence(enum state state, unsigned char final, unsigned char c, bool *again)
{
    if (c >= 0x20 && c < final)
        return state;
    *again = c < 0x20 || c >= 0x7F;
    return GROUND;
}

static enum state string(unsigned char c, bool *again)
{
    if (c == ESC)
        return STRING_ESCAPE;
    if (c == '\n' || c == '\r')
        *again = true;
    return c == '\n' || c == '\r' || c == '\a' || c == 0x18 || c == 0x1A ? GROUND : STRING;
}

/* ESC inside a string ends it; with '\' that was all, otherwise another sequence has begun. */
static enum state string_escape(unsigned char c, bool *again)
{
    return c == '\\' ? GROUND : escape(c, again);
}

static enum state step(enum state state, unsigned char c, bool *again)
{
    switch (state) {
    case ESCAPE:
        return escape(c, again);
    case INTERMEDIATE:
        return sequence(state, 0x30, c, again);
    case CSI:
        return sequence(state, 0x40, c, again);
    case STRING:
        return string(c, again);
    case STRING_ESCAPE:
        return string_escape(c, again);
    default:
        return GROUND;
    }
}

/* A byte >= 0x80. Returns how many bytes were taken. */
static size_t character(struct term_filter *f, const char *s, size_t n, struct buf *out)
{
    int len = utf8_char(s, n);
    if (len < 0) {
        memcpy(f->held, s, n);
        f->n_held = n;
        return n;
    }
    if (len == 0) {
        bool whole;
        buf_adds(out, UTF8_REPLACEMENT);
        return utf8_sequence(s, n, &whole);
    }
    bool c1 = len == 2 && (unsigned char)s[0] == 0xC2 && (unsigned char)s[1] < 0xA0;
    if (!c1)
        buf_add(out, s, (size_t)len);
    return (size_t)len;
}

/* Text up to the next byte that wants a closer look. */
static size_t plain_run(const char *s, size_t n)
{
    size_t i = utf8_printable(s, n);
    while (i < n && is_text((unsigned char)s[i])) {
        i++;
        i += utf8_printable(s + i, n - i);
    }
    return i;
}

static void feed(struct term_filter *f, const char *s, size_t n, struct buf *out)
{
    for (size_t i = 0; i < n;) {
        unsigned char c = (unsigned char)s[i];
        if (f->state != GROUND) {
            bool again = false;
            f->state = step((enum state)f->state, c, &again);
            i += !again;
        } else if (is_text(c)) {
            size_t run = plain_run(s + i, n - i);
            buf_add(out, s + i, run);
            i += run;
        } else if (c >= 0x80) {
            i += character(f, s + i, n - i, out);
        } else {
            f->state = c == ESC ? ESCAPE : GROUND;
            i++;
        }
    }
}

void term_filter_feed(struct term_filter *f, const char *s, size_t n, struct buf *out)
{
    /* A held character is completed byte by byte; whatever becomes of it, feed deals with it. */
    while (f->n_held > 0 && n > 0) {
        char joined[sizeof f->held + 1];
        size_t len = f->n_held;
        memcpy(joined, f->held, len);
        joined[len++] = *s;
        f->n_held = 0;
        int whole = utf8_char(joined, len);
        if (whole == 0) { /* not continued: the prefix is bad, the new byte is looked at on its own */
            utf8_clean(out, joined, len - 1, true);
            break;
        }
        feed(f, joined, len, out);
        s++;
        n--;
    }
    feed(f, s, n, out);
}

void term_filter_reset(struct term_filter *f, struct buf *out)
{
    if (f->n_held > 0)
        buf_adds(out, UTF8_REPLACEMENT);
    *f = (struct term_filter){0};
}

bool term_filter_is_valid(const struct term_filter *f)
{
    return f->state >= GROUND && f->state <= STRING_ESCAPE && f->n_held <= sizeof f->held;
}
