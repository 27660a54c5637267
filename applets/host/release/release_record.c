#include "release_record.h"

#include <stdint.h>
#include <string.h>

#define DIGITS 8

/* A number of exactly `width` digits, or (width 0) of as many as there are, up to nine; *used is how many. */
static bool number(const char *s, size_t n, size_t width, size_t *value, size_t *used)
{
    *value = *used = 0;
    while (*used < n && *used < (width ? width : 9) && s[*used] >= '0' && s[*used] <= '9')
        *value = *value * 10 + (size_t)(s[(*used)++] - '0');
    return *used > 0 && (width == 0 || *used == width);
}

size_t record_size(struct span text, const char *kind)
{
    static const char start[] = "#toolbox ";
    size_t length = strlen(kind), value, used;
    if (text.n < RECORD_MARK_SIZE)
        return 0;
    const char *mark = text.s + text.n - RECORD_MARK_SIZE, *number_at = mark + sizeof start - 1 + length + 1;
    if (memcmp(mark, start, sizeof start - 1) != 0 || memcmp(mark + sizeof start - 1, kind, length) != 0 ||
        number_at[-1] != ' ' || mark[RECORD_MARK_SIZE - 1] != '\n' ||
        !number(number_at, DIGITS, DIGITS, &value, &used))
        return 0;
    return value >= RECORD_MARK_SIZE && value <= RECORD_MAX && value <= text.n ? value : 0;
}

struct span record_lines(struct span text, const char *kind)
{
    size_t size = record_size(text, kind);
    if (size == 0)
        return (struct span){NULL, 0};
    return (struct span){text.s + text.n - size, size - RECORD_MARK_SIZE};
}

/* Cuts the next line off, without its newline, which must be there. */
static int cut_line(struct span *rest, struct span *line)
{
    if (rest->n == 0)
        return 0;
    const char *end = memchr(rest->s, '\n', rest->n);
    if (!end)
        return -1;
    *line = (struct span){rest->s, (size_t)(end - rest->s)};
    rest->n -= line->n + 1;
    rest->s = end + 1;
    return 1;
}

/* What may be the name of a file in a release's folder: nothing that leads elsewhere or plays with a
 * terminal. */
static bool is_name(struct span name)
{
    for (size_t i = 0; i < name.n; i++) {
        char c = name.s[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
              c == '-' || (c == '.' && i > 0)))
            return false;
    }
    return name.n > 0 && name.n <= 255;
}

int sums_next(struct span *rest, struct sum *sum)
{
    enum { HEX = SHA256_HEX_SIZE - 1 };
    struct span line;
    int found = cut_line(rest, &line);
    if (found <= 0)
        return found;
    if (line.n < HEX + 3 || line.s[HEX] != ' ' || (line.s[HEX + 1] != ' ' && line.s[HEX + 1] != '*'))
        return -1;
    for (size_t i = 0; i < HEX; i++)
        if (!line.s[i] || !strchr("0123456789abcdef", line.s[i]))
            return -1;
    memcpy(sum->sha256, line.s, HEX);
    sum->sha256[HEX] = '\0';
    sum->name = (struct span){line.s + HEX + 2, line.n - HEX - 2};
    return is_name(sum->name) ? 1 : -1;
}

bool sums_find(struct span lines, const char *name, char hex[SHA256_HEX_SIZE])
{
    struct sum sum;
    int more, found = 0;
    while ((more = sums_next(&lines, &sum)) > 0)
        if (span_is(sum.name, name)) {
            memcpy(hex, sum.sha256, SHA256_HEX_SIZE);
            found++;
        }
    return more == 0 && found == 1;
}

int pack_next(struct span *rest, struct packed *packed)
{
    struct span line;
    size_t used;
    int found = cut_line(rest, &line);
    if (found <= 0)
        return found;
    if (!number(line.s, line.n, 0, &packed->size, &used) || packed->size == 0 || used == line.n ||
        line.s[used] != ' ')
        return -1;
    packed->name = (struct span){line.s + used + 1, line.n - used - 1};
    return is_name(packed->name) ? 1 : -1;
}
