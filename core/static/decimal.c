#include "decimal.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { WORDS = 256 };

/* A whole number of any size, lowest word first. */
struct whole {
    uint32_t words[WORDS];
    size_t n;
};

#define BILLION 1000000000U
#define WORD ((uint64_t)1 << 32)

/* Times by plus more, both below base, which words go up to. */
static void multiply(struct whole *w, uint64_t base, uint32_t by, uint32_t more)
{
    uint64_t carry = more;
    for (size_t i = 0; i < w->n; i++, carry /= base) {
        carry += (uint64_t)w->words[i] * by;
        w->words[i] = (uint32_t)(carry % base);
    }
    if (carry > 0)
        w->words[w->n++] = (uint32_t)carry;
}

/* The remainder. */
static uint32_t divide(struct whole *w, uint32_t by)
{
    uint64_t rest = 0;
    for (size_t i = w->n; i-- > 0;) {
        rest = rest << 32 | w->words[i];
        w->words[i] = (uint32_t)(rest / by);
        rest %= by;
    }
    while (w->n > 0 && w->words[w->n - 1] == 0)
        w->n--;
    return (uint32_t)rest;
}

static uint32_t power(uint32_t of, int exponent)
{
    uint32_t result = 1;
    while (exponent-- > 0)
        result *= of;
    return result;
}

static int least(int a, int b)
{
    return a < b ? a : b;
}

static void strip(struct decimal *d)
{
    while (d->n > 0 && d->digits[d->n - 1] == '0')
        d->n--;
    if (d->n == 0)
        d->point = 1;
}

void decimal_of(double value, struct decimal *d)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    int exponent = (int)(bits >> 52 & 2047);
    bits = (bits & (((uint64_t)1 << 52) - 1)) | (uint64_t)(exponent > 0) << 52;
    exponent = (exponent > 0 ? exponent : 1) - 1075;
    for (; bits > 0 && bits % 2 == 0 && exponent < 0; bits /= 2)
        exponent++;
    struct whole w = {.n = 0};
    for (; bits > 0; bits /= BILLION)
        w.words[w.n++] = (uint32_t)(bits % BILLION);
    /* Halves are fives of the next place. */
    d->point = least(exponent, 0);
    for (int todo = exponent, step; todo != 0; todo += todo > 0 ? -step : step) {
        step = least(todo > 0 ? todo : -todo, 12);
        multiply(&w, BILLION, power(todo > 0 ? 2 : 5, step), 0);
    }
    d->n = 0;
    while (w.n-- > 0)
        for (uint32_t unit = BILLION / 10; unit > 0; unit /= 10) {
            uint32_t digit = w.words[w.n] / unit % 10;
            if (d->n > 0 || digit > 0)
                d->digits[d->n++] = (char)('0' + digit);
        }
    d->point += d->n;
    strip(d);
}

void decimal_round(struct decimal *d, int digits)
{
    if (digits >= d->n)
        return;
    char next = '0';
    bool exact = false, odd = false;
    if (digits >= 0) {
        next = d->digits[digits];
        exact = digits + 1 == d->n;
        odd = digits > 0 && d->digits[digits - 1] % 2 != 0;
    }
    d->n = digits > 0 ? digits : 0;
    if (next < '5' || (next == '5' && exact && !odd)) {
        strip(d);
        return;
    }
    while (d->n > 0 && d->digits[d->n - 1] == '9')
        d->n--;
    if (d->n > 0) {
        d->digits[d->n - 1]++;
    } else {
        d->digits[d->n++] = '1';
        d->point++;
    }
}

/* The whole number times two to the power of exponent; more: and a little more. */
static double rounded(struct whole *w, int exponent, bool more)
{
    if (w->n == 0)
        return 0;
    int free = __builtin_clz(w->words[w->n - 1]);
    multiply(w, WORD, 1U << free, 0);
    exponent += 32 * (int)w->n - 64 - free;
    uint64_t top = (uint64_t)w->words[--w->n] << 32;
    top |= w->n > 0 ? w->words[--w->n] : 0;
    while (w->n > 0)
        more |= w->words[--w->n] > 0;
    double value = (double)(top | more);
    for (; exponent > 0; exponent--)
        value *= 2;
    for (; exponent < 0; exponent++)
        value /= 2;
    return value;
}

double decimal_value(const struct decimal *d)
{
    if (d->n == 0 || d->point < -330)
        return 0;
    if (d->point > 310)
        return HUGE_VAL;
    struct whole w = {.n = 0};
    for (int i = 0; i < d->n; i++)
        multiply(&w, WORD, 10, (uint32_t)(d->digits[i] - '0'));
    int tens = d->point - d->n;
    for (int step; tens > 0; tens -= step) {
        step = least(tens, 9);
        multiply(&w, WORD, power(10, step), 0);
    }
    /* So many words more that 64 bits are left of it. */
    size_t words = tens < 0 ? (size_t)(-tens / 9 + 3) : 0;
    memmove(w.words + words, w.words, w.n * sizeof *w.words);
    memset(w.words, 0, words * sizeof *w.words);
    w.n += words;
    bool more = false;
    for (int step; tens < 0; tens += step) {
        step = least(-tens, 9);
        more |= divide(&w, power(10, step)) > 0;
    }
    return rounded(&w, -32 * (int)words, more);
}
