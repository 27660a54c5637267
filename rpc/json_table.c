#include "json_table.h"

#include <string.h>

#include "utf8.h"

static void put_cell(struct span object, const char *key, struct buf *out)
{
    struct span value;
    enum json_kind kind;
    if (json_member(object, key, &value, NULL) && !json_string_text(value, out) &&
        ((kind = json_kind(value)) == JSON_NUMBER || kind == JSON_BOOL))
        buf_add(out, value.s, value.n);
    for (size_t i = 0; i < out->len; i++) {
        bool c1 = (unsigned char)out->data[i] == 0xC2 && (unsigned char)out->data[i + 1] < 0xA0;
        if ((unsigned char)out->data[i] < ' ' || out->data[i] == 0x7f || c1)
            out->data[i] = ' ';
        if (c1)
            out->data[++i] = ' ';
    }
    if (out->len == 0)
        buf_addc(out, '-');
}

static size_t width_of(struct span list, const char *key)
{
    struct span object;
    size_t width = strlen(key);
    for (size_t at = 0; json_element(list, &at, &object);) {
        struct buf cell BUF_AUTO = BUF_INIT;
        put_cell(object, key, &cell);
        size_t n = utf8_count(cell.data, cell.len);
        width = n > width ? n : width;
    }
    return width;
}

/* The last column is not filled up. */
static void put_padded(struct buf *out, struct span cell, size_t width, bool last)
{
    buf_add(out, cell.s, cell.n);
    for (size_t n = utf8_count(cell.s, cell.n); !last && n < width + 2; n++)
        buf_addc(out, ' ');
    if (last)
        buf_addc(out, '\n');
}

enum { COLUMNS_MAX = 16 };

void json_table(struct buf *out, struct span list, const char *const *columns)
{
    size_t widths[COLUMNS_MAX], n = 0;
    struct span object;
    for (; n < COLUMNS_MAX && columns[n]; n++)
        widths[n] = width_of(list, columns[n]);
    for (size_t i = 0; i < n; i++)
        put_padded(out, (struct span){columns[i], strlen(columns[i])}, widths[i], i + 1 == n);
    for (size_t at = 0; json_element(list, &at, &object);) {
        for (size_t i = 0; i < n; i++) {
            struct buf cell BUF_AUTO = BUF_INIT;
            put_cell(object, columns[i], &cell);
            put_padded(out, span_of(&cell), widths[i], i + 1 == n);
        }
    }
}
