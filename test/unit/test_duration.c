#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "duration.h"

static void test_times(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double seconds;
    } cases[] = {{"5", 5},       {"0.5", 0.5},  {".5", 0.5}, {"5s", 5},     {"500ms", 0.5}, {"2m", 120},
                 {"1.5h", 5400}, {"1d", 86400}, {"0", 0},    {"1e3", 1000}, {"1e9", 1e9}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double seconds = -1;
        assert_true(duration_read(cases[i].text, &seconds));
        assert_float_equal(seconds, cases[i].seconds, 1e-9);
    }
}

static void test_no_times(void **state)
{
    (void)state;
    static const char *const cases[] = {"",     "s",    "-5",  "+5", "5 s", "5S",    "0x10", "inf", "nan",
                                        "1e10", "5min", "5s5", "m",  ".",   "1e999", "ms",   " 5",  "40000d"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double seconds;
        assert_false(duration_read(cases[i], &seconds));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_times), cmocka_unit_test(test_no_times)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
