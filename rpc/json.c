/* Walking checked text: members and elements, as spans of it. */
#include "json.h"

#include <string.h>

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static size_t skip_space(struct span t, size_t at)
{
    while (at < t.n && is_space(t.s[at]))
        at++;
    return at;
}

/* From the opening quote to behind the closing one: the first that an even number of backslashes is before.
 */
static size_t skip_string(struct span t, size_t at)
{
    const char *start = t.s + at + 1, *end = t.s + t.n;
    for (const char *quote = start; quote < end; quote++) {
        quote = memchr(quote, '"', (size_t)(end - quote));
        if (!quote)
            break;
        const char *run = quote;
        while (run > start && run[-1] == '\\')
            run--;
        if ((quote - run) % 2 == 0)
            return (size_t)(quote + 1 - t.s);
    }
    return t.n;
}

static size_t skip_value(struct span t, size_t at)
{
    size_t depth = 0;
    while (at < t.n) {
        char c = t.s[at];
        if (c == '"') {
            at = skip_string(t, at);
        } else if (c == '{' || c == '[') {
            depth++;
            at++;
        } else if (depth > 0) {
            if (c == '}' || c == ']')
                depth--;
            at++;
        } else {
            while (at < t.n && !is_space(t.s[at]) && t.s[at] != ',' && t.s[at] != ']' && t.s[at] != '}')
                at++;
            return at;
        }
        if (depth == 0)
            return at;
    }
    return at;
}

enum json_kind json_kind(struct span value)
{
    size_t at = skip_space(value, 0);
    switch (at < value.n ? value.s[at] : '\0') {
    case 'n':
        return JSON_NULL;
    case 't':
    case 'f':
        return JSON_BOOL;
    case '"':
        return JSON_STRING;
    case '[':
        return JSON_ARRAY;
    case '{':
        return JSON_OBJECT;
    default:
        return JSON_NUMBER;
    }
}

/* To the start of the next entry of a container; false at its end. *at == 0: nothing was taken yet. */
static bool next_entry(struct span t, size_t *at)
{
    size_t i = skip_space(t, *at);
    if (i >= t.n || t.s[i] == ']' || t.s[i] == '}')
        return false;
    i = skip_space(t, i + 1); /* the bracket or the comma */
    *at = i;
    return i < t.n && t.s[i] != ']' && t.s[i] != '}';
}

static struct span take(struct span t, size_t *at, size_t end)
{
    struct span part = {t.s + *at, end - *at};
    *at = end;
    return part;
}

bool json_element(struct span array, size_t *at, struct span *value)
{
    if (!next_entry(array, at))
        return false;
    *value = take(array, at, skip_value(array, *at));
    return true;
}

bool json_next_member(struct span object, size_t *at, struct span *key, struct span *value)
{
    if (!next_entry(object, at))
        return false;
    *key = take(object, at, skip_string(object, *at));
    *at = skip_space(object, *at);
    *at = skip_space(object, *at < object.n ? *at + 1 : *at); /* the colon */
    *value = take(object, at, skip_value(object, *at));
    return true;
}

void json_members(struct span object, const char *const *keys, size_t n, struct span *values, int *counts)
{
    struct span key, value;
    for (size_t i = 0; i < n; i++) {
        values[i] = (struct span){NULL, 0};
        counts[i] = 0;
    }
    for (size_t at = 0; json_next_member(object, &at, &key, &value);)
        for (size_t i = 0; i < n; i++)
            if (json_string_is(key, keys[i])) {
                values[i] = value;
                counts[i]++;
            }
}

bool json_member(struct span object, const char *name, struct span *value, int *count)
{
    struct span found;
    int n;
    json_members(object, &name, 1, &found, &n);
    if (n > 0)
        *value = found;
    if (count)
        *count = n;
    return n > 0;
}

void json_compact(struct buf *out, struct span text)
{
    buf_reserve(out, text.n);
    for (size_t at = skip_space(text, 0); at < text.n; at = skip_space(text, at)) {
        size_t start = at;
        if (text.s[at] == '"')
            at = skip_string(text, at);
        else
            while (at < text.n && text.s[at] != '"' && !is_space(text.s[at]))
                at++;
        buf_add(out, text.s + start, at - start);
    }
}
