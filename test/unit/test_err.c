#include "support.h"

#include "err.h"
#include "utf8.h"

static void filling_returns_minus_one(void **state)
{
    (void)state;
    struct err err = {0};
    assert_int_equal(err_set(&err, ERR_PARAMS, "field '%s' is %d", "x", 7), -1);
    assert_int_equal(err.code, ERR_PARAMS);
    assert_string_equal(err.msg, "field 'x' is 7");
    assert_int_equal(err_sys(&err, ERR_TOOL, ENOENT, "cannot open %s", "/x"), -1);
    assert_int_equal(err.code, ERR_TOOL);
    assert_string_equal(err.msg, "cannot open /x: No such file or directory");
    assert_int_equal(err_wrap(&err, "while %s", "testing"), -1);
    assert_int_equal(err.code, ERR_TOOL);
    assert_string_equal(err.msg, "while testing: cannot open /x: No such file or directory");
}

static void no_error_wanted_is_fine(void **state)
{
    (void)state;
    assert_int_equal(err_set(NULL, ERR_TOOL, "%s", "x"), -1);
    assert_int_equal(err_sys(NULL, ERR_TOOL, EIO, "%s", "x"), -1);
    assert_int_equal(err_wrap(NULL, "%s", "x"), -1);
}

/* What came from another process is taken whole or not at all. */
static void only_an_error_is_taken_for_one(void **state)
{
    (void)state;
    struct err err, got = {0};
    memset(&err, 0, sizeof err);
    err_set(&err, ERR_TOOL, "wrong: %s", "\303\251");
    assert_int_equal(err_take(&got, &err, sizeof err), 0);
    assert_int_equal(got.code, ERR_TOOL);
    assert_string_equal(got.msg, err.msg);
    assert_int_equal(err_take(NULL, &err, sizeof err), 0);
    assert_int_equal(err_take(&got, &err, sizeof err - 1), -1);
    assert_int_equal(err_take(&got, NULL, 0), -1);
    err.code = 7;
    assert_int_equal(err_take(&got, &err, sizeof err), -1);
    err.code = ERR_TOOL;
    err.msg[0] = '\377';
    assert_int_equal(err_take(&got, &err, sizeof err), -1);
    memset(err.msg, 'x', sizeof err.msg);
    assert_int_equal(err_take(&got, &err, sizeof err), -1);
    assert_string_equal(got.msg, "wrong: \303\251");
}

/* Whoever fills an error may still want to know what failed. */
static void errno_stays(void **state)
{
    (void)state;
    struct err err;
    errno = EXDEV;
    err_set(&err, ERR_TOOL, "%s %d %f", "text", 1, 1.5);
    err_sys(&err, ERR_TOOL, ENOENT, "text");
    err_wrap(&err, "text");
    assert_int_equal(errno, EXDEV);
}

/* Text of `total` bytes that ends in `end`. */
static char *long_text(size_t total, const char *end)
{
    char *text = malloc(total + 1);
    assert_non_null(text);
    memset(text, 'x', total);
    memcpy(text + total - strlen(end), end, strlen(end) + 1);
    return text;
}

/* Each size around the limit, with characters of each length across it. */
static void a_long_message_ends_in_a_whole_character(void **state)
{
    (void)state;
    static const char *const ends[] = {
        "", "y", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80", "\xF0\x9F\x98\x80zz"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        for (size_t total = ERR_MSG_MAX - 8; total < ERR_MSG_MAX + 8; total++) {
            struct err err;
            char *text = long_text(total, ends[i]);
            err_set(&err, ERR_TOOL, "%s", text);
            size_t n = strlen(err.msg);
            assert_true(utf8_is_valid(err.msg, n));
            assert_memory_equal(err.msg, text, n);
            if (total < ERR_MSG_MAX)
                assert_int_equal(n, total); /* what fits is whole */
            else
                assert_in_range(n, ERR_MSG_MAX - 4, ERR_MSG_MAX - 1);
            free(text);
        }
    }
}

/* Names of files may be in any encoding: no more is lost than the end. */
static void a_long_message_of_other_bytes_is_kept(void **state)
{
    (void)state;
    struct err err;
    char *text = long_text(2000, "");
    memset(text, 0x82, 2000);
    err_set(&err, ERR_TOOL, "cannot open %s", text);
    free(text);
    assert_in_range(strlen(err.msg), ERR_MSG_MAX - 4, ERR_MSG_MAX - 1);
}

static void what_is_put_around_a_long_message_cuts_it(void **state)
{
    (void)state;
    struct err err;
    char *text = long_text(3000, "");
    err_set(&err, ERR_TOOL, "%s", text);
    err_wrap(&err, "context");
    assert_memory_equal(err.msg, "context: xxx", 12);
    assert_in_range(strlen(err.msg), ERR_MSG_MAX - 4, ERR_MSG_MAX - 1);
    err_sys(&err, ERR_TOOL, ENOENT, "%s", text);
    assert_in_range(strlen(err.msg), ERR_MSG_MAX - 4, ERR_MSG_MAX - 1);
    err_set(&err, ERR_TOOL, "short");
    err_wrap(&err, "%s\xE2\x82\xAC", text);
    assert_true(utf8_is_valid(err.msg, strlen(err.msg)));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(filling_returns_minus_one),
        cmocka_unit_test(no_error_wanted_is_fine),
        cmocka_unit_test(errno_stays),
        cmocka_unit_test(only_an_error_is_taken_for_one),
        cmocka_unit_test(a_long_message_ends_in_a_whole_character),
        cmocka_unit_test(a_long_message_of_other_bytes_is_kept),
        cmocka_unit_test(what_is_put_around_a_long_message_cuts_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
