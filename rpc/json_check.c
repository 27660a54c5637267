/* The strict scanner: RFC 8259 and nothing else, in one pass and without recursion. */
#include "json.h"

#include "json_plain.h"
#include "utf8.h"

struct scan {
    const char *s;
    size_t n, at;
    size_t depth;
    unsigned char in_object[JSON_DEPTH_MAX / 8]; /* a bit for each open bracket: it is a brace */
    const char *fault;
};

static bool fail(struct scan *sc, const char *fault)
{
    sc->fault = fault;
    return false;
}

static const char END[] = "unexpected end";
static const char UNEXPECTED[] = "unexpected character";

static bool unexpected(struct scan *sc)
{
    return fail(sc, sc->at < sc->n ? UNEXPECTED : END);
}

/* The character at the cursor; 0 behind the end (a NUL is never right where this is asked). */
static char peek(const struct scan *sc)
{
    return sc->at < sc->n ? sc->s[sc->at] : '\0';
}

static void skip_space(struct scan *sc)
{
    while (peek(sc) == ' ' || peek(sc) == '\n' || peek(sc) == '\r' || peek(sc) == '\t')
        sc->at++;
}

static bool scan_literal(struct scan *sc, const char *word)
{
    for (; *word; word++, sc->at++)
        if (peek(sc) != *word)
            return unexpected(sc);
    return true;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool scan_digits(struct scan *sc)
{
    if (!is_digit(peek(sc)))
        return unexpected(sc);
    while (is_digit(peek(sc)))
        sc->at++;
    return true;
}

static bool scan_number(struct scan *sc)
{
    if (peek(sc) == '-')
        sc->at++;
    if (peek(sc) == '0') {
        sc->at++;
        if (is_digit(peek(sc)))
            return fail(sc, "a number starts with 0");
    } else if (!scan_digits(sc)) {
        return false;
    }
    if (peek(sc) == '.') {
        sc->at++;
        if (!scan_digits(sc))
            return false;
    }
    if (peek(sc) == 'e' || peek(sc) == 'E') {
        sc->at++;
        if (peek(sc) == '+' || peek(sc) == '-')
            sc->at++;
        return scan_digits(sc);
    }
    return true;
}

static bool is_hex(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool scan_escape(struct scan *sc)
{
    sc->at++;
    char c = peek(sc);
    sc->at++;
    switch (c) {
    case '"':
    case '\\':
    case '/':
    case 'b':
    case 'f':
    case 'n':
    case 'r':
    case 't':
        return true;
    case 'u':
        for (int i = 0; i < 4; i++, sc->at++)
            if (!is_hex(peek(sc)))
                return fail(sc, sc->at < sc->n ? "bad \\u escape" : END);
        return true;
    default:
        sc->at--;
        return fail(sc, sc->at < sc->n ? "unknown escape" : END);
    }
}

static bool scan_string(struct scan *sc)
{
    if (peek(sc) != '"')
        return unexpected(sc);
    for (sc->at++;;) {
        sc->at += json_plain_run(sc->s + sc->at, sc->n - sc->at, true);
        if (sc->at == sc->n)
            return unexpected(sc);
        unsigned char c = (unsigned char)sc->s[sc->at];
        if (c == '"') {
            sc->at++;
            return true;
        }
        if (c == '\\') {
            if (!scan_escape(sc))
                return false;
        } else if (c < 0x20) {
            return fail(sc, "control character in a string");
        } else {
            int len = utf8_char(sc->s + sc->at, sc->n - sc->at);
            if (len <= 0)
                return fail(sc, len < 0 ? END : "invalid UTF-8");
            sc->at += (size_t)len;
        }
    }
}

static bool scan_key(struct scan *sc)
{
    skip_space(sc);
    if (!scan_string(sc))
        return false;
    skip_space(sc);
    if (peek(sc) != ':')
        return unexpected(sc);
    sc->at++;
    return true;
}

static bool inside_object(const struct scan *sc)
{
    size_t level = sc->depth - 1;
    return sc->in_object[level / 8] >> level % 8 & 1;
}

static bool open_bracket(struct scan *sc, bool object)
{
    if (sc->depth == JSON_DEPTH_MAX)
        return fail(sc, "nested too deeply");
    unsigned char bit = (unsigned char)(1u << sc->depth % 8);
    unsigned char *byte = &sc->in_object[sc->depth / 8];
    *byte = object ? *byte | bit : *byte & (unsigned char)~bit;
    sc->depth++;
    sc->at++;
    return true;
}

static bool closes(const struct scan *sc)
{
    return peek(sc) == (inside_object(sc) ? '}' : ']');
}

/* A scalar, or the opening of a container; *value tells whether a value has to follow next (it has not where
 * a value is complete, be it an empty container). */
static bool scan_value(struct scan *sc, bool *value)
{
    char c = peek(sc);
    *value = false;
    if (c == '{' || c == '[') {
        if (!open_bracket(sc, c == '{'))
            return false;
        skip_space(sc);
        if (closes(sc)) {
            sc->depth--;
            sc->at++;
            return true;
        }
        *value = true;
        return c == '[' || scan_key(sc);
    }
    if (c == '"')
        return scan_string(sc);
    if (c == 't' || c == 'f' || c == 'n')
        return scan_literal(sc, c == 't' ? "true" : c == 'f' ? "false" : "null");
    return scan_number(sc);
}

/* Behind a value: the comma and what belongs to the next one, or the brackets that close here. */
static bool scan_behind(struct scan *sc, bool *value)
{
    for (; sc->depth > 0; sc->depth--, sc->at++) {
        skip_space(sc);
        if (peek(sc) == ',') {
            sc->at++;
            *value = true;
            return !inside_object(sc) || scan_key(sc);
        }
        if (!closes(sc))
            return unexpected(sc);
    }
    skip_space(sc);
    return sc->at == sc->n || fail(sc, "more text behind the value");
}

static struct scan scan(struct span text)
{
    struct scan sc = {.s = text.s, .n = text.n};
    bool value = true;
    if (text.n >= 3 && text.s[0] == '\xEF' && text.s[1] == '\xBB' && text.s[2] == '\xBF')
        fail(&sc, "byte order mark");
    while (!sc.fault && value) {
        skip_space(&sc);
        if (scan_value(&sc, &value) && !value)
            scan_behind(&sc, &value);
    }
    return sc;
}

int json_check(struct span text, struct err *err)
{
    struct scan sc = scan(text);
    if (sc.fault)
        return err_set(err, ERR_PARSE, "Not valid JSON: %s at byte %zu", sc.fault, sc.at);
    return 0;
}

bool json_is_cut(struct span text)
{
    return scan(text).fault == END;
}
