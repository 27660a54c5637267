/* printf's family and strtod of the static binary, instead of the C library's.
 *
 * Its printf is 13 KB, because of what nobody here says: hexadecimal numbers with a point, wide characters,
 * places of arguments; its strtod another 6. Here is %d %i %u %x %X %o %c %s %p %e %f %g and %%, with all
 * flags, widths and precisions, and l, ll, z, j and t before whole numbers. Anything else ends the process:
 * test/unit/test_format.c holds all texts of the sources to it. */
#include <ctype.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "decimal.h"

/* Where it goes: a file, or memory, what fits of it. */
struct sink {
    FILE *file;
    char *to;
    size_t room, n;
};

struct spec {
    bool left, zero, plus, space, alternative;
    int width, precision; /* -1: none */
    size_t size;          /* bytes of a whole number */
    char kind;
};

struct args {
    va_list list;
};

static void put(struct sink *s, const char *text, size_t n)
{
    if (s->file)
        fwrite(text, 1, n, s->file);
    else if (s->n < s->room)
        memcpy(s->to + s->n, text, n < s->room - s->n ? n : s->room - s->n);
    s->n += n;
}

static void put_many(struct sink *s, char c, int n)
{
    for (; n > 0; n--)
        put(s, &c, 1);
}

/* before: sign or 0x, which stand in front of zeros. */
static void put_padded(struct sink *s, const struct spec *p, const char *before, int zeros, const char *text,
                       int n)
{
    int used = (int)strlen(before) + (zeros > 0 ? zeros : 0) + n, pad = p->width - used;
    if (!p->left && !p->zero)
        put_many(s, ' ', pad);
    put(s, before, strlen(before));
    if (!p->left && p->zero)
        put_many(s, '0', pad);
    put_many(s, '0', zeros);
    put(s, text, (size_t)n);
    if (p->left)
        put_many(s, ' ', pad);
}

static const char *sign(const struct spec *p, bool negative)
{
    return negative ? "-" : p->plus ? "+" : p->space ? " " : "";
}

static void put_whole(struct sink *s, struct spec *p, struct args *args)
{
    char digits[24], *at = digits + sizeof digits;
    const char *before = "", *names = p->kind == 'X' ? "0123456789ABCDEF" : "0123456789abcdef";
    bool is_signed = p->kind == 'd' || p->kind == 'i';
    long long got = p->size > sizeof(int) ? va_arg(args->list, long long)
                    : is_signed           ? va_arg(args->list, int)
                                          : (long long)va_arg(args->list, unsigned);
    unsigned long long value = (unsigned long long)got;
    unsigned base = is_signed || p->kind == 'u' ? 10 : p->kind == 'o' ? 8 : 16;
    if (is_signed) {
        before = sign(p, got < 0);
        value = got < 0 ? 0 - value : value;
    } else if (p->alternative && base == 16 && value > 0) {
        before = p->kind == 'X' ? "0X" : "0x";
    }
    for (; value > 0; value /= base)
        *--at = names[value % base];
    int n = (int)(digits + sizeof digits - at), least = p->precision < 0 ? 1 : p->precision;
    if (p->alternative && base == 8 && least <= n)
        least = n + 1;
    p->zero &= p->precision < 0;
    put_padded(s, p, before, least - n, at, n);
}

/* ---- with a point ---- */

enum { LONGEST = 400, MOST_PLACES = 60 };

static char digit_at(const struct decimal *d, int i)
{
    return i >= 0 && i < d->n ? d->digits[i] : '0';
}

/* Digits and so many places behind the point. The end. */
static char *write_places(char *to, const struct decimal *d, int point, int places, bool dot)
{
    if (point <= 0)
        *to++ = '0';
    for (int i = 0; i < point; i++)
        *to++ = digit_at(d, i);
    if (places > 0 || dot)
        *to++ = '.';
    for (int i = 0; i < places; i++)
        *to++ = digit_at(d, point + i);
    return to;
}

static char *write_exponent(char *to, int exponent, char e)
{
    *to++ = e;
    *to++ = exponent < 0 ? '-' : '+';
    unsigned n = (unsigned)(exponent < 0 ? -exponent : exponent);
    if (n >= 100)
        *to++ = (char)('0' + n / 100);
    *to++ = (char)('0' + n / 10 % 10);
    *to++ = (char)('0' + n % 10);
    return to;
}

/* Its frame is large: it is no part of put_spec's. */
static __attribute__((noinline)) void put_number(struct sink *s, struct spec *p, double value)
{
    char text[LONGEST];
    struct decimal d;
    int kind = p->kind | 32, digits = p->precision < 0             ? 6
                                      : p->precision < MOST_PLACES ? p->precision
                                                                   : MOST_PLACES;
    if (!isfinite(value)) {
        const char *words = p->kind == kind ? "naninf" : "NANINF";
        p->zero = false;
        put_padded(s, p, sign(p, signbit(value)), 0, words + (isnan(value) ? 0 : 3), 3);
        return;
    }
    decimal_of(value, &d);
    int places = digits;
    bool exponent = kind == 'e';
    if (kind == 'g') {
        digits = digits > 0 ? digits : 1;
        decimal_round(&d, digits);
        exponent = d.point < -3 || d.point > digits;
        places = p->alternative ? digits - (exponent ? 1 : d.point) : d.n - (exponent ? 1 : d.point);
    } else {
        decimal_round(&d, exponent ? digits + 1 : d.point + digits);
    }
    char *end = write_places(text, &d, exponent ? 1 : d.point, places, p->alternative);
    if (exponent)
        end = write_exponent(end, d.point - 1, p->kind == kind ? 'e' : 'E');
    put_padded(s, p, sign(p, signbit(value)), 0, text, (int)(end - text));
}

/* ---- all of them ---- */

static void put_text(struct sink *s, struct spec *p, const char *text)
{
    text = text ? text : "(null)";
    p->zero = false;
    put_padded(s, p, "", 0, text,
               (int)(p->precision < 0 ? strlen(text) : strnlen(text, (size_t)p->precision)));
}

static void put_spec(struct sink *s, struct spec *p, struct args *args)
{
    char c;
    switch (p->kind) {
    case 'p':
        p->alternative = true;
        p->size = sizeof(void *);
        /* fallthrough */
    case 'd':
    case 'i':
    case 'u':
    case 'o':
    case 'x':
    case 'X':
        put_whole(s, p, args);
        break;
    case 'c':
        c = (char)va_arg(args->list, int);
        p->zero = false;
        put_padded(s, p, "", 0, &c, 1);
        break;
    case 's':
        put_text(s, p, va_arg(args->list, const char *));
        break;
    case '%':
        put(s, "%", 1);
        break;
    default:
        if (!strchr("eEfFgG", p->kind) || p->kind == '\0')
            __builtin_trap();
        put_number(s, p, va_arg(args->list, double));
    }
}

/* A number, or * for an argument. */
static int number(const char **at, struct args *args)
{
    int n = 0;
    if (**at == '*') {
        ++*at;
        return va_arg(args->list, int);
    }
    for (; isdigit((unsigned char)**at); ++*at)
        n = n * 10 + (**at - '0');
    return n;
}

static size_t size_of(const char **at)
{
    static const size_t sizes[] = {sizeof(long), sizeof(long long)};
    size_t size = sizeof(int);
    for (char before = '\0'; **at != '\0' && strchr("lzjt", **at); before = *(*at)++)
        size = sizes[**at == 'j' || before == 'l'];
    return size;
}

/* What follows a %. Where the text goes on. */
static const char *read_spec(const char *at, struct spec *p, struct args *args)
{
    *p = (struct spec){.precision = -1};
    for (bool flag = true; flag; at += flag) {
        flag = true;
        switch (*at) {
        case '-':
            p->left = true;
            break;
        case '0':
            p->zero = true;
            break;
        case '+':
            p->plus = true;
            break;
        case ' ':
            p->space = true;
            break;
        case '#':
            p->alternative = true;
            break;
        default:
            flag = false;
        }
    }
    p->width = number(&at, args);
    if (p->width < 0) {
        p->left = true;
        p->width = -p->width;
    }
    if (*at == '.') {
        at++;
        p->precision = number(&at, args);
    }
    p->size = size_of(&at);
    p->kind = *at;
    return at + 1;
}

static int format(struct sink *s, const char *text, va_list list)
{
    struct args args;
    va_copy(args.list, list);
    for (;;) {
        size_t n = strcspn(text, "%");
        put(s, text, n);
        text += n;
        if (*text == '\0')
            break;
        struct spec p;
        text = read_spec(text + 1, &p, &args);
        put_spec(s, &p, &args);
    }
    va_end(args.list);
    return s->n <= INT_MAX ? (int)s->n : -1;
}

int vsnprintf(char *to, size_t size, const char *text, va_list list)
{
    struct sink s = {.to = to, .room = size > 0 ? size - 1 : 0};
    int n = format(&s, text, list);
    if (size > 0)
        to[s.n < s.room ? s.n : s.room] = '\0';
    return n;
}

int vfprintf(FILE *file, const char *text, va_list list)
{
    struct sink s = {.file = file};
    int n = format(&s, text, list);
    return ferror(file) ? -1 : n;
}
