#include "support.h"

#include "signals.h"

static void names_are_known_in_every_spelling(void **state)
{
    (void)state;
    assert_int_equal(signal_number("INT"), SIGINT);
    assert_int_equal(signal_number("SIGINT"), SIGINT);
    assert_int_equal(signal_number("int"), SIGINT);
    assert_int_equal(signal_number("sigInt"), SIGINT);
    assert_int_equal(signal_number("TERM"), SIGTERM);
    assert_int_equal(signal_number("KILL"), SIGKILL);
    assert_int_equal(signal_number("winch"), SIGWINCH);
    assert_int_equal(signal_number("2"), 2);
    assert_int_equal(signal_number("09"), 9);
    assert_int_equal(signal_number("64"), 64);
}

/* As `kill -l` of any shell has them, from 1. */
static void every_ordinary_signal_has_its_number(void **state)
{
    (void)state;
    static const char *const names[] = {"HUP",  "INT",    "QUIT", "ILL",   "TRAP", "ABRT", "BUS",  "FPE",
                                        "KILL", "USR1",   "SEGV", "USR2",  "PIPE", "ALRM", "TERM", "STKFLT",
                                        "CHLD", "CONT",   "STOP", "TSTP",  "TTIN", "TTOU", "URG",  "XCPU",
                                        "XFSZ", "VTALRM", "PROF", "WINCH", "IO",   "PWR",  "SYS"};
    for (int i = 0; i < 31; i++)
        if (i + 1 != 16) /* not there on every processor, and sent by nobody */
            assert_int_equal(signal_number(names[i]), i + 1);
}

static void anything_else_is_none(void **state)
{
    (void)state;
    static const char *const bad[] = {"",          "0",   "-1", "-9",   "65",  "99999999999999999999",
                                      "SIG",       "FOO", "2x", "SIG2", "IN",  "INTX",
                                      "SIGSIGINT", " 2",  "+2", "INT ", "0x2", "2.0"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (signal_number(bad[i]) != -1)
            fail_msg("'%s' is taken for %d", bad[i], signal_number(bad[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_known_in_every_spelling),
        cmocka_unit_test(every_ordinary_signal_has_its_number),
        cmocka_unit_test(anything_else_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
