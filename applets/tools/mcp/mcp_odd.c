#include "mcp_odd.h"

#include <string.h>

static const char HEAD[] = "Content-Length:";

static bool is_object(struct span text)
{
    return json_kind(text) == JSON_OBJECT && json_check(text, NULL) == 0;
}

/* From the first brace on, without what stands behind. */
static struct span object_in(struct span piece)
{
    const char *begin = memchr(piece.s, '{', piece.n);
    if (!begin)
        return (struct span){NULL, 0};
    struct span text = {begin, piece.n - (size_t)(begin - piece.s)};
    const char *head = memmem(text.s, text.n, HEAD, sizeof HEAD - 1);
    if (head && !is_object(text))
        text.n = (size_t)(head - text.s);
    while (text.n > 0 && strchr(" \t\r", text.s[text.n - 1]))
        text.n--;
    return text;
}

bool mcp_odd_next(struct span line, size_t *at, struct span *text)
{
    const char *array = line.n > 3 && memcmp(line.s, "\xEF\xBB\xBF", 3) == 0 ? line.s + 3 : line.s;
    struct span all = {array, line.n - (size_t)(array - line.s)};
    if (json_kind(all) == JSON_ARRAY && json_check(all, NULL) == 0)
        return json_element(all, at, text);
    while (*at < line.n) {
        struct span piece = {line.s + *at, line.n - *at};
        struct span whole = object_in(piece);
        const char *end = whole.s && is_object(whole) ? NULL : memchr(piece.s, '\r', piece.n);
        if (end)
            piece.n = (size_t)(end - piece.s);
        *at += piece.n + 1;
        *text = object_in(piece);
        if (text->s && is_object(*text))
            return true;
    }
    return false;
}

bool mcp_odd_answer(struct span text, struct buf *out)
{
    struct span value;
    if (json_kind(text) != JSON_OBJECT || json_member(text, "jsonrpc", &value, NULL) ||
        json_member(text, "method", &value, NULL) || !json_member(text, "id", &value, NULL) ||
        !(json_member(text, "result", &value, NULL) || json_member(text, "error", &value, NULL)))
        return false;
    const char *brace = memchr(text.s, '{', text.n);
    buf_adds(out, "{\"jsonrpc\":\"2.0\",");
    buf_add(out, brace + 1, text.n - (size_t)(brace + 1 - text.s));
    return true;
}

struct span mcp_odd_nothing(struct span text)
{
    struct span id, value;
    bool other = json_kind(text) != JSON_OBJECT || !json_member(text, "id", &id, NULL) ||
                 json_member(text, "method", &value, NULL) || json_member(text, "result", &value, NULL) ||
                 json_member(text, "error", &value, NULL);
    return other ? (struct span){NULL, 0} : id;
}

bool mcp_odd_begins(struct span line)
{
    return (line.n == 1 && *line.s == '{') ||
           (line.n >= sizeof HEAD - 1 && memcmp(line.s, HEAD, sizeof HEAD - 1) == 0);
}
