#include "page_number.h"

#include <stdbool.h>

struct digits {
    struct span text;
    size_t at;
};

static bool digit_here(const struct digits *d)
{
    return d->at < d->text.n && d->text.s[d->at] >= '0' && d->text.s[d->at] <= '9';
}

static long long add_digit(long long value, int digit, long long max)
{
    return value > (max - digit) / 10 ? max : value * 10 + digit;
}

static int exponent_of(struct digits *d)
{
    if (d->at >= d->text.n || (d->text.s[d->at] | 0x20) != 'e')
        return 0;
    d->at++;
    bool less = d->at < d->text.n && d->text.s[d->at] == '-';
    if (less || (d->at < d->text.n && d->text.s[d->at] == '+'))
        d->at++;
    long long exponent = 0;
    for (; digit_here(d); d->at++)
        exponent = add_digit(exponent, d->text.s[d->at] - '0', 1000);
    return (int)(less ? -exponent : exponent);
}

long long page_number(struct span value, long long max)
{
    if (value.n >= 2 && value.s[0] == '"')
        value = (struct span){value.s + 1, value.n - 2};
    struct digits d = {value, 0};
    bool negative = value.n > 0 && value.s[0] == '-';
    d.at += negative;
    size_t whole = d.at;
    while (digit_here(&d))
        d.at++;
    size_t point = d.at;
    if (d.at < d.text.n && d.text.s[d.at] == '.')
        for (d.at++; digit_here(&d);)
            d.at++;
    size_t end = d.at;
    /* How many digits, the point aside, are before the point once it has moved by the exponent. */
    long long wanted = (long long)(point - whole) + exponent_of(&d), number = 0;
    for (size_t i = whole; wanted > 0; i++) {
        if (i == point)
            continue;
        number = add_digit(number, i < end ? value.s[i] - '0' : 0, max);
        wanted--;
    }
    return negative ? -number : number;
}
