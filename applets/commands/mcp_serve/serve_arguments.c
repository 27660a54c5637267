/* Arguments as models and their hosts really write them, put as the tool wants them: what can mean one thing
 * only is taken for it. The rest stays as it came, and is refused by name. */
#include <stdlib.h>
#include <string.h>

#include "serve.h"

static bool same_but_for_case(const char *a, const char *b)
{
    for (;; a++, b++) {
        while (*a == '_' || *a == '-')
            a++;
        while (*b == '_' || *b == '-')
            b++;
        if ((*a | ('A' <= *a && *a <= 'Z' ? 32 : 0)) != (*b | ('A' <= *b && *b <= 'Z' ? 32 : 0)))
            return false;
        if (!*a)
            return true;
    }
}

/* Names that other tools of the kind have: those of a key stand behind it, up to its bar. */
static bool is_other_name(const char *key, const char *name)
{
    static const char *const names[][6] = {
        {"path", "file_path", "filename", "file", "directory", NULL},
        {"command", "cmd", "script", NULL},
        {"old_str", "old_string", "old_text", NULL},
        {"new_str", "new_string", "new_text", "insert_text", NULL},
        {"file_text", "content", "contents", NULL},
        {"content", "contents", "file_text", "text", NULL},
        {"cwd", "workdir", "working_directory", NULL},
        {"pattern", "query", "regex", NULL},
        {"session", "session_id", "session_name", NULL},
        {"job", "job_id", "pid", NULL},
        {"element_id", "element", "ref", NULL},
        {"action", "type", NULL},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (size_t k = 1; strcmp(names[i][0], key) == 0 && names[i][k]; k++)
            if (same_but_for_case(names[i][k], name))
                return true;
    return false;
}

static const struct field *field_of(const struct mcp_tool *tool, const char *name)
{
    for (size_t i = 0; i < tool->n_fields; i++)
        if (same_but_for_case(tool->fields[i].key, name))
            return &tool->fields[i];
    for (size_t i = 0; i < tool->n_fields; i++)
        if (is_other_name(tool->fields[i].key, name))
            return &tool->fields[i];
    return NULL;
}

/* Nothing, as strict schemas make their hosts fill it in. An empty text is one where it is content. */
static bool is_nothing(const struct field *f, struct span value)
{
    bool word = f->type == PARAM_NAME || f->words || strcmp(f->key, "command") == 0;
    if (f->required)
        return false;
    switch (json_kind(value)) {
    case JSON_NULL:
        return true;
    case JSON_STRING:
        return value.n == 2 && (word || f->type != PARAM_TEXT);
    case JSON_ARRAY:
    case JSON_OBJECT:
        for (size_t i = 1; i + 1 < value.n; i++)
            if (!strchr(" \t\r\n", value.s[i]))
                return false;
        return true;
    case JSON_NUMBER:
        return f->min > 0 && strtod(value.s, NULL) == 0;
    default:
        return false;
    }
}

/* The value that a string holds the JSON text of, if it does and it is of one of two kinds. */
static bool is_text_of(struct span value, enum json_kind kind, enum json_kind other, struct buf *text)
{
    struct err err;
    buf_truncate(text, 0);
    return json_kind(value) == JSON_STRING && json_string_text(value, text) && text->len > 0 &&
           json_check(span_of(text), &err) == 0 &&
           (json_kind(span_of(text)) == kind || json_kind(span_of(text)) == other);
}

static void put_integer(struct buf *out, struct span value)
{
    char *end;
    double number = strtod(value.s, &end);
    if (memchr(value.s, '.', value.n) || memchr(value.s, 'e', value.n) || memchr(value.s, 'E', value.n)) {
        if (number > -9e15 && number < 9e15 && (double)(long long)number == number) {
            buf_addf(out, "%lld", (long long)number);
            return;
        }
    }
    buf_add(out, value.s, value.n);
}

static void put_quoted(struct buf *out, struct span value)
{
    if (json_kind(value) == JSON_NUMBER || json_kind(value) == JSON_BOOL)
        json_put_string(out, value.s, value.n);
    else
        buf_add(out, value.s, value.n);
}

/* NAME=VALUE in an array, or an object, whose values may be numbers. */
static void put_variables(struct buf *out, struct span value)
{
    struct buf text BUF_AUTO = BUF_INIT;
    struct span key, one;
    bool list = json_kind(value) == JSON_ARRAY;
    buf_addc(out, '{');
    for (size_t at = 0; list ? json_element(value, &at, &one) : json_next_member(value, &at, &key, &one);) {
        if (out->data[out->len - 1] != '{')
            buf_addc(out, ',');
        if (!list) {
            buf_add(out, key.s, key.n);
            buf_addc(out, ':');
            put_quoted(out, one);
            continue;
        }
        buf_truncate(&text, 0);
        json_string_text(one, &text);
        size_t n = strcspn(buf_str(&text), "=");
        json_put_string(out, buf_str(&text), n);
        buf_addc(out, ':');
        if (n < text.len)
            json_put_string(out, text.data + n + 1, text.len - n - 1);
        else
            buf_adds(out, "null"); /* which is refused by its name */
    }
    buf_addc(out, '}');
}

static void put_list(struct buf *out, const struct field *f, struct span value)
{
    if (json_kind(value) == JSON_STRING && f->type == PARAM_NAMES) {
        buf_addc(out, '[');
        buf_add(out, value.s, value.n);
        buf_addc(out, ']');
    } else {
        buf_add(out, value.s, value.n);
    }
}

static void put_value(struct buf *out, const struct field *f, struct span value)
{
    struct buf text BUF_AUTO = BUF_INIT;
    bool lists =
        f->type == PARAM_NAMES || f->type == PARAM_INTS || f->type == PARAM_ENV || f->type == PARAM_LIST;
    bool numbers = f->type == PARAM_INT || f->type == PARAM_NUMBER;
    if ((lists && is_text_of(value, JSON_ARRAY, JSON_OBJECT, &text)) ||
        (numbers && is_text_of(value, JSON_NUMBER, JSON_NUMBER, &text)) ||
        (f->type == PARAM_BOOL && is_text_of(value, JSON_BOOL, JSON_BOOL, &text)))
        value = span_of(&text);
    if (f->type == PARAM_INT && json_kind(value) == JSON_NUMBER)
        put_integer(out, value);
    else if (f->type == PARAM_ENV && (json_kind(value) == JSON_ARRAY || json_kind(value) == JSON_OBJECT))
        put_variables(out, value);
    else
        put_list(out, f, value);
}

void serve_arguments(const struct mcp_tool *tool, struct span given, struct buf *out)
{
    struct buf name BUF_AUTO = BUF_INIT;
    struct span key, value;
    buf_addc(out, '{');
    for (size_t at = 0; given.s && json_next_member(given, &at, &key, &value);) {
        buf_truncate(&name, 0);
        const struct field *f = json_string_text(key, &name) ? field_of(tool, buf_str(&name)) : NULL;
        if (!f || is_nothing(f, value))
            continue;
        json_key(out, f->key);
        put_value(out, f, value);
    }
    buf_addc(out, '}');
}
