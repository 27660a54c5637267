#include "page_columns.h"

#include "mem.h"
#include "page_number.h"
#include "page_snapshot.h"

int column_number(struct span value)
{
    return (int)page_number(value, PAGE_COORDINATE_MAX);
}

size_t column_length(struct span array)
{
    struct span element;
    size_t n = 0;
    for (size_t at = 0; json_element(array, &at, &element);)
        n++;
    return n;
}

struct span column_of(struct span object, const char *key)
{
    struct span value = {"[]", 2};
    if (json_kind(object) == JSON_OBJECT)
        json_member(object, key, &value, NULL);
    return json_kind(value) == JSON_ARRAY ? value : (struct span){"[]", 2};
}

void column_strings(struct column_strings *strings, struct span array)
{
    struct span element;
    strings->n = column_length(array);
    strings->at = mem_alloc((strings->n + 1) * sizeof *strings->at);
    size_t i = 0;
    for (size_t at = 0; json_element(array, &at, &element);)
        strings->at[i++] = element;
}

struct span column_string(const struct column_strings *strings, int number)
{
    return number >= 0 && (size_t)number < strings->n ? strings->at[number] : (struct span){"\"\"", 2};
}

struct span column_next_string(const struct column_strings *strings, struct span array, size_t *at)
{
    struct span number;
    bool there = json_kind(array) == JSON_ARRAY && json_element(array, at, &number);
    return column_string(strings, there ? column_number(number) : -1);
}

struct column_sparse column_sparse(struct span nodes, const char *key)
{
    struct span column = {"{}", 2};
    if (json_kind(nodes) == JSON_OBJECT)
        json_member(nodes, key, &column, NULL);
    return (struct column_sparse){column_of(column, "index"), column_of(column, "value"), 0, 0};
}

bool column_text(const struct column_strings *strings, int number, struct buf *text)
{
    buf_truncate(text, 0);
    return json_string_text(column_string(strings, number), text) && text->len > 0;
}
