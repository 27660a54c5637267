/* The static binary's printf and strtod, against those of this machine's C library. */
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static int own_vsnprintf(char *to, size_t size, const char *text, va_list list);
static int own_vfprintf(FILE *file, const char *text, va_list list);
static double own_strtod(const char *text, char **end);
#define vsnprintf own_vsnprintf
#define vfprintf own_vfprintf
#define strtod own_strtod
/* NOLINTBEGIN(bugprone-suspicious-include): their functions bear the C library's names */
#include "static/decimal.c"
#include "static/format.c"
#include "static/number.c"
/* NOLINTEND(bugprone-suspicious-include) */
#undef vsnprintf
#undef vfprintf
#undef strtod

enum { ROOM = 2000 };

static __attribute__((format(printf, 1, 2))) void same(const char *format_text, ...)
{
    static char want[ROOM], got[ROOM], filed[ROOM];
    const size_t sizes[] = {ROOM, 0, 1, 2, 7};
    va_list ap;
    va_start(ap, format_text);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        va_list own, theirs;
        va_copy(own, ap);
        va_copy(theirs, ap);
        memset(want, '~', sizeof want);
        memset(got, '~', sizeof got);
        int n =
            vsnprintf(want, sizes[i], format_text, theirs); /* NOLINT(clang-analyzer-valist.Uninitialized) */
        if (own_vsnprintf(got, sizes[i], format_text, own) != n || memcmp(got, want, sizeof want) != 0)
            fail_msg("'%s' in %zu gives '%.100s', not '%.100s'", format_text, sizes[i], got, want);
        va_end(own);
        va_end(theirs);
    }
    FILE *file = fmemopen(filed, sizeof filed, "w");
    vsnprintf(want, sizeof want, format_text, ap);
    va_end(ap);
    va_start(ap, format_text);
    assert_int_equal(own_vfprintf(file, format_text, ap), strlen(want));
    va_end(ap);
    assert_int_equal(fclose(file), 0);
    assert_string_equal(filed, want);
}

/* The compiler warns of flags that are ignored. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat"
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wformat-overflow"
#endif

static void texts(void **state)
{
    (void)state;
    const char *none = NULL;
    same("%s", "");
    same("nothing");
    same("100 %% of %s and %s", "this", "that");
    same("[%5s] [%-5s] [%05s] [%.2s] [%5.1s] [%-8.3s] [%.0s]", "abc", "abc", "abc", "abc", "abc", "abcdef",
         "abc");
    same("[%*s] [%*s] [%-*s] [%.*s] [%.*s]", 6, "ab", -6, "ab", 4, "ab", 1, "ab", -1, "ab");
    same("%c%c [%3c] [%-3c]", 'a', '\n', 'b', 'c');
    same("%p %p", (void *)state, (void *)1);
    same("%.10s", none);
    same("%*s|", 300, "wide");
}

static void whole_numbers(void **state)
{
    (void)state;
    const long long numbers[] = {0,   1,    -1,        7,         8,          9,         10,
                                 255, -255, INT32_MAX, INT32_MIN, UINT32_MAX, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        long long n = numbers[i];
        same("%d %i %u %x %X %o", (int)n, (int)n, (unsigned)n, (unsigned)n, (unsigned)n, (unsigned)n);
        same("%ld %lu %lx %lo", (long)n, (unsigned long)n, (unsigned long)n, (unsigned long)n);
        same("%lld %llu %llx %llX %llo", n, n, n, n, n);
        same("%zd %zu %zx %jd %jx %td", (ssize_t)n, (size_t)n, (size_t)n, (intmax_t)n, (uintmax_t)n,
             (ptrdiff_t)n);
        same("[%6lld] [%-6lld] [%06lld] [%+lld] [% lld] [%+06lld] [% -6lld]", n, n, n, n, n, n, n);
        same("[%.0lld] [%.3lld] [%8.3lld] [%-8.3lld] [%08.3lld] [%+.3lld] [%24lld]", n, n, n, n, n, n, n);
        same("[%#llx] [%#llX] [%#llo] [%#.3llo] [%#010llx] [%-#10llx] [%016llx]", n, n, n, n, n, n, n);
        same("[%#.0llo] [%#.0llx] [%0*lld] [%*.*lld]", n, n, 5, n, 9, 4, n);
    }
}

static void same_number(double n)
{
    same("%f %e %g %F %E %G", n, n, n, n, n, n);
    same("%.0f %.1f %.3f %.15f %#.0f", n, n, n, n, n);
    same("%.0e %.1e %.16e %#.0e", n, n, n, n);
    same("%.0g %.1g %.9g %.15g %.17g %#g %#.3g", n, n, n, n, n, n, n);
    same("[%12.3f] [%-12.3f] [%012.3f] [%+.3f] [% .3f] [%+012.4g]", n, n, n, n, n, n);
    same("[%*.*f]", 20, 2, n);
}

static void numbers_with_a_point(void **state)
{
    (void)state;
    const double numbers[] = {0,
                              0.1,
                              0.5,
                              1,
                              1.5,
                              2.5,
                              9.95,
                              9.5,
                              0.95,
                              99.999,
                              0.05,
                              0.0001,
                              0.00009999995,
                              123456,
                              999998.5,
                              1234567,
                              1e15,
                              1e17,
                              1e21,
                              1e22,
                              1e23,
                              1e100,
                              1e300,
                              1.7976931348623157e308,
                              2.2250738585072014e-308,
                              5e-324,
                              1e-5,
                              1e-10,
                              1e-300,
                              0.3,
                              2.0 / 3,
                              4503599627370496.5,
                              9007199254740992,
                              (double)INFINITY,
                              (double)NAN};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        same_number(numbers[i]);
        if (!isnan(numbers[i]))
            same_number(-numbers[i]);
    }
}

#pragma GCC diagnostic pop

static double random_number(void)
{
    uint64_t bits = 0;
    for (int i = 0; i < 4; i++)
        bits = bits << 16 | (uint64_t)(random() & 65535);
    double value;
    memcpy(&value, &bits, sizeof value);
    return isfinite(value) ? value : 0;
}

static void same_read(const char *text)
{
    char *want_end, *end;
    double want = strtod(text, &want_end), got = own_strtod(text, &end);
    /* with the sign of a zero; NOLINTNEXTLINE(bugprone-suspicious-memory-comparison) */
    if (memcmp(&got, &want, sizeof want) != 0 || end != want_end)
        fail_msg("'%s' gives %.17g and leaves '%s', not %.17g and '%s'", text, got, end, want, want_end);
}

static const char *const texts_read[] = {"",
                                         " ",
                                         "-",
                                         "+",
                                         ".",
                                         "-.",
                                         ".e1",
                                         "e1",
                                         "x",
                                         "0",
                                         "-0",
                                         "+0.0",
                                         "00012",
                                         "1",
                                         "-1",
                                         "+1",
                                         " \t\n12",
                                         "1.",
                                         ".5",
                                         "-.5e1",
                                         "1e",
                                         "1e+",
                                         "1e-",
                                         "1e5x",
                                         "1E5",
                                         "1e+05",
                                         "1e-05",
                                         "12ms",
                                         "1.5h",
                                         "1.2.3",
                                         "1e400",
                                         "-1e400",
                                         "1e-400",
                                         "0e400",
                                         "0.0e-5",
                                         "1e99999999999999999999",
                                         "1e-99999999999999999999",
                                         "9007199254740992",
                                         "9007199254740993",
                                         "9007199254740995",
                                         "9007199254740993.0000000000000000000000000000000000000000001",
                                         "9007199254740992.9999999999999999999999999999999999",
                                         "1.7976931348623157e308",
                                         "1.7976931348623159e308",
                                         "179769313486231580793e289",
                                         "2.2250738585072014e-308",
                                         "0.1",
                                         "0.3",
                                         "123456789012345678901234567890",
                                         "0.000000000000000000000000000000000123",
                                         "1e22",
                                         "1e23",
                                         "8.5e22",
                                         "4.35",
                                         "100000000000000000000000"};

static void reads_numbers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof texts_read / sizeof *texts_read; i++)
        same_read(texts_read[i]);
    assert_true(own_strtod("2.5", NULL) == 2.5);
    char longest[2100];
    memset(longest, '0', sizeof longest);
    memcpy(longest, "9007199254740993.", 17);
    longest[sizeof longest - 2] = '1';
    longest[sizeof longest - 1] = '\0';
    same_read(longest);
    memset(longest, '7', sizeof longest - 1);
    longest[300] = '.';
    same_read(longest);
}

static void random_numbers(void **state)
{
    (void)state;
    srandom(1);
    for (int i = 0; i < 3000; i++) {
        double n = i % 2 ? random_number() : (double)random() / (double)(1 + random() % 100000);
        char text[400];
        same("%.*g %.*e %.*f", (int)(random() % 20), n, (int)(random() % 20), n, (int)(random() % 20), n);
        for (int digits = 1; digits < 25; digits += 4) {
            snprintf(text, sizeof text, "%.*g", digits, n);
            if (fabs(n) > 1e-307)
                same_read(text);
        }
        snprintf(text, sizeof text, "%.17g", n);
        assert_true(fabs(n) < 1e-307 || own_strtod(text, NULL) == n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts),
        cmocka_unit_test(whole_numbers),
        cmocka_unit_test(numbers_with_a_point),
        cmocka_unit_test(reads_numbers),
        cmocka_unit_test(random_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
