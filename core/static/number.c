/* strtod of the static binary, instead of the C library's: decimal numbers, nothing hexadecimal and no words.
 */
#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include "decimal.h"

/* Digits, with what they mean for the point. */
static const char *read_digits(const char *at, struct decimal *d, bool behind_point)
{
    for (; isdigit((unsigned char)*at); at++) {
        bool leading = d->n == 0 && *at == '0', full = d->n == sizeof d->digits - 1;
        d->point += behind_point ? -leading : !leading;
        if (full)
            d->digits[d->n - 1] |= *at != '0'; /* half of it would go the other way */
        else if (!leading)
            d->digits[d->n++] = *at;
    }
    return at;
}

/* An exponent, if there is a whole one. */
static const char *read_exponent(const char *at, struct decimal *d)
{
    if ((*at | 32) != 'e')
        return at;
    const char *digits = at + 1 + (at[1] == '+' || at[1] == '-');
    if (!isdigit((unsigned char)*digits))
        return at;
    int exponent = 0;
    for (; isdigit((unsigned char)*digits); digits++)
        exponent = exponent < 100000 ? exponent * 10 + (*digits - '0') : exponent;
    d->point += at[1] == '-' ? -exponent : exponent;
    return digits;
}

double strtod(const char *text, char **end)
{
    struct decimal d = {.n = 0};
    const char *at = text;
    while (isspace((unsigned char)*at))
        at++;
    bool negative = *at == '-';
    at += negative || *at == '+';
    const char *first = at, *whole = read_digits(at, &d, false), *last = whole;
    if (*whole == '.')
        last = read_digits(whole + 1, &d, true);
    bool any = last - first > (*whole == '.');
    if (any)
        last = read_exponent(last, &d);
    if (end)
        *end = (char *)(any ? last : text);
    double value = decimal_value(&d);
    return negative && any ? -value : value;
}
