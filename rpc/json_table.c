#include "json_table.h"

#include <stdlib.h>
#include <string.h>

#include "utf8.h"

/* ---- units ---- */

/* With two figures or more. */
static void put_scaled(struct buf *out, double value, const char *unit)
{
    buf_addf(out, "%.*f %s", value < 9.95 ? 1 : 0, value, unit);
}

static void put_seconds(struct buf *out, double s)
{
    if (s < 0.0995)
        buf_addf(out, "%.0f ms", s * 1000);
    else if (s < 60)
        put_scaled(out, s, "s");
    else if (s < 3600)
        put_scaled(out, s / 60, "min");
    else if (s < 86400)
        put_scaled(out, s / 3600, "h");
    else
        put_scaled(out, s / 86400, "d");
}

static void put_bytes(struct buf *out, double n)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
    size_t i = 0;
    if (n < 1024) {
        buf_addf(out, "%.0f B", n);
        return;
    }
    for (n /= 1024; n >= 1024 && i < 3; i++)
        n /= 1024;
    put_scaled(out, n, units[i]);
}

/* The part of a name that tells the unit: "_s", "_kb"; "bytes" and the streams of jobs tell it as a whole. */
static const char *unit_of(const char *key)
{
    const char *end = strrchr(key, '_');
    if (end && (strcmp(end, "_s") == 0 || strcmp(end, "_kb") == 0))
        return end;
    if (strstr(key, "bytes") || strncmp(key, "unread_std", 10) == 0)
        return key + strlen(key);
    return NULL;
}

static void put_with_unit(struct buf *out, const char *unit, struct span number)
{
    double value = strtod(number.s, NULL);
    if (unit[0] == '_' && unit[1] == 's')
        put_seconds(out, value);
    else
        put_bytes(out, unit[0] == '_' ? value * 1024 : value);
}

/* ---- cells ---- */

struct table {
    struct span list;
    bool exact;
};

static void put_heading(const struct table *t, const char *key, struct buf *out)
{
    const char *unit = t->exact ? NULL : unit_of(key);
    buf_add(out, key, unit ? (size_t)(unit - key) : strlen(key));
}

static void put_cell(const struct table *t, struct span object, const char *key, struct buf *out)
{
    struct span value;
    enum json_kind kind = JSON_NULL;
    const char *unit = t->exact ? NULL : unit_of(key);
    if (json_member(object, key, &value, NULL) && !json_string_text(value, out))
        kind = json_kind(value);
    if (kind == JSON_NUMBER && unit)
        put_with_unit(out, unit, value);
    else if (kind == JSON_NUMBER || kind == JSON_BOOL)
        buf_add(out, value.s, value.n);
    utf8_make_line(out, 0);
    if (out->len == 0)
        buf_addc(out, '-');
}

static size_t width_of(const struct table *t, const char *key)
{
    struct buf heading BUF_AUTO = BUF_INIT;
    struct span object;
    put_heading(t, key, &heading);
    size_t width = utf8_columns(heading.data, heading.len);
    for (size_t at = 0; json_element(t->list, &at, &object);) {
        struct buf cell BUF_AUTO = BUF_INIT;
        put_cell(t, object, key, &cell);
        size_t n = utf8_columns(cell.data, cell.len);
        width = n > width ? n : width;
    }
    return width;
}

/* The last column is not filled up. */
static void put_padded(struct buf *out, const struct buf *cell, size_t width, bool last)
{
    buf_add(out, cell->data, cell->len);
    for (size_t n = utf8_columns(cell->data, cell->len); !last && n < width + 2; n++)
        buf_addc(out, ' ');
    if (last)
        buf_addc(out, '\n');
}

enum { COLUMNS_MAX = 16 };

static void put_table(struct buf *out, const struct table *t, const char *const *columns)
{
    size_t widths[COLUMNS_MAX], n = 0;
    struct span object;
    for (; n < COLUMNS_MAX && columns[n]; n++)
        widths[n] = width_of(t, columns[n]);
    for (size_t i = 0; i < n; i++) {
        struct buf heading BUF_AUTO = BUF_INIT;
        put_heading(t, columns[i], &heading);
        put_padded(out, &heading, widths[i], i + 1 == n);
    }
    for (size_t at = 0; json_element(t->list, &at, &object);) {
        for (size_t i = 0; i < n; i++) {
            struct buf cell BUF_AUTO = BUF_INIT;
            put_cell(t, object, columns[i], &cell);
            put_padded(out, &cell, widths[i], i + 1 == n);
        }
    }
}

void json_table(struct buf *out, struct span list, const char *const *columns)
{
    put_table(out, &(struct table){list, false}, columns);
}

void json_table_exact(struct buf *out, struct span list, const char *const *columns)
{
    put_table(out, &(struct table){list, true}, columns);
}
