/* Output that is cut: whole lines of its begin and its end, and every byte shown or counted. */
#include "support.h"

#include "tools/bash_session/bash_session_cut.h"

/* In pieces of that size. */
static void check(const char *text, size_t piece, size_t head, size_t tail, const char *expected)
{
    struct cut c CUT_AUTO = CUT_INIT(head, tail);
    struct buf out BUF_AUTO = BUF_INIT;
    for (size_t at = 0, n = strlen(text); at < n; at += piece)
        cut_feed(&c, text + at, n - at < piece ? n - at : piece, &out);
    cut_end(&c, &out);
    assert_string_equal(buf_str(&out), expected);
}

static void check_all(const char *text, size_t head, size_t tail, const char *expected)
{
    for (size_t piece = 1; piece <= strlen(text) + 1; piece++)
        check(text, piece, head, tail, expected);
}

static void what_fits_is_whole(void **state)
{
    (void)state;
    check_all("", 3, 3, "");
    check_all("one\ntwo\n", 4, 4, "one\ntwo\n");
    check_all("one\ntwo", 4, 4, "one\ntwo");
    check_all("\n\n", 1, 1, "\n\n");
    check_all("one\n", 0, 4, "one\n");
}

static void lines_are_left_out_whole(void **state)
{
    (void)state;
    check_all("1\n22\n333\n4444\n55555\n", 5, 7, "1\n22\n[9 bytes left out]\n55555\n");
    check_all("1\n22\n333\n4444\n55555\n", 6, 11, "1\n22\n[4 bytes left out]\n4444\n55555\n");
    check_all("1\n22\n333\n", 0, 5, "[5 bytes left out]\n333\n");
    check_all("a\nb\nlast", 2, 4, "a\n[2 bytes left out]\nlast");
}

static void a_long_line_is_cut_itself(void **state)
{
    (void)state;
    check_all("abcdefghij", 3, 4, "abc\n[3 bytes left out]\nghij");
    check_all("\xC3\xA4\xC3\xA4\xC3\xA4\xC3\xA4", 3, 3, "\xC3\xA4\n[4 bytes left out]\n\xC3\xA4");
    check_all("x\nabcdefghij\ny\n", 3, 3, "x\n[11 bytes left out]\ny\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_fits_is_whole),
        cmocka_unit_test(lines_are_left_out_whole),
        cmocka_unit_test(a_long_line_is_cut_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
