#include "mcp_print.h"

#include <string.h>

#include "term_filter.h"
#include "utf8.h"

#define DESCRIPTION_MAX 400 /* bytes of a description's first line */

/* A member that is a string, decoded; false where it is none. */
static bool text_of(struct span object, const char *key, struct buf *out)
{
    struct span value;
    return json_member(object, key, &value, NULL) && json_string_text(value, out);
}

/* What a server says, for a terminal: it is not to act on it. */
static void put_plain(struct span text, struct buf *out)
{
    struct term_filter filter = {0};
    term_filter_feed(&filter, text.s, text.n, out);
}

static void plain_text_of(struct span object, const char *key, struct buf *out)
{
    struct buf text BUF_AUTO = BUF_INIT;
    if (text_of(object, key, &text))
        put_plain(span_of(&text), out);
}

/* The same on one line. */
static bool plain_word_of(struct span object, const char *key, struct buf *out)
{
    size_t before = out->len;
    plain_text_of(object, key, out);
    for (size_t i = before; i < out->len; i++)
        if (strchr("\t\r\n", out->data[i]))
            out->data[i] = ' ';
    return out->len > before;
}

static bool object_in(struct span object, const char *key, enum json_kind kind, struct span *value)
{
    return json_member(object, key, value, NULL) && json_kind(*value) == kind;
}

/* Its first line that isn't empty, behind two spaces. */
static void put_description(struct span object, struct buf *out)
{
    struct buf text BUF_AUTO = BUF_INIT;
    plain_text_of(object, "description", &text);
    const char *line = buf_str(&text) + strspn(buf_str(&text), " \t\r\n");
    size_t n = strcspn(line, "\r\n"),
           shown = n < DESCRIPTION_MAX ? n : utf8_valid_prefix(line, DESCRIPTION_MAX);
    if (n > 0)
        buf_addf(out, "  %.*s%s", (int)shown, line, shown < n ? "…" : "");
}

static bool is_required(struct span schema, struct span name)
{
    struct span list, element;
    if (!object_in(schema, "required", JSON_ARRAY, &list))
        return false;
    for (size_t at = 0; json_element(list, &at, &element);)
        if (element.n == name.n && memcmp(element.s, name.s, name.n) == 0)
            return true;
    return false;
}

static void put_argument(struct span schema, struct span name, struct span property, struct buf *out)
{
    struct span type;
    bool object = json_kind(property) == JSON_OBJECT;
    buf_adds(out, "    ");
    put_plain(name, out);
    if (object && json_member(property, "type", &type, NULL)) {
        buf_adds(out, ": ");
        put_plain(type, out);
    }
    if (is_required(schema, name))
        buf_adds(out, " (required)");
    if (object)
        put_description(property, out);
    buf_addc(out, '\n');
}

void mcp_print_tools(struct span tools, struct buf *out)
{
    struct span tool, schema, properties, name, property;
    for (size_t at = 0; json_element(tools, &at, &tool);) {
        if (json_kind(tool) != JSON_OBJECT)
            continue;
        plain_word_of(tool, "name", out);
        put_description(tool, out);
        buf_addc(out, '\n');
        if (!object_in(tool, "inputSchema", JSON_OBJECT, &schema) ||
            !object_in(schema, "properties", JSON_OBJECT, &properties))
            continue;
        for (size_t i = 0; json_next_member(properties, &i, &name, &property);)
            put_argument(schema, name, property, out);
    }
}

static void put_content(struct span part, struct buf *out)
{
    struct span resource, data;
    if (json_kind(part) != JSON_OBJECT)
        return;
    bool embedded = object_in(part, "resource", JSON_OBJECT, &resource);
    if (!text_of(part, "text", out) && !(embedded && text_of(resource, "text", out))) {
        buf_addc(out, '[');
        plain_word_of(part, "type", out);
        buf_addc(out, ' ');
        if (!plain_word_of(part, "mimeType", out) && !plain_word_of(part, "uri", out) && embedded)
            plain_word_of(resource, "uri", out);
        if (object_in(part, "data", JSON_STRING, &data))
            buf_addf(out, ", %zu characters of base64", data.n - 2);
        buf_addc(out, ']');
    }
    if (out->len > 0 && out->data[out->len - 1] != '\n')
        buf_addc(out, '\n');
}

bool mcp_print_result(struct span result, struct buf *out)
{
    struct span content, part, value;
    if (json_kind(result) != JSON_OBJECT)
        return false;
    if (object_in(result, "content", JSON_ARRAY, &content))
        for (size_t at = 0; json_element(content, &at, &part);)
            put_content(part, out);
    if (out->len == 0 && json_member(result, "structuredContent", &value, NULL))
        buf_add(out, value.s, value.n);
    return json_member(result, "isError", &value, NULL) && span_is(value, "true");
}
