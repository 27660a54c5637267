#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>

#include "base64.h"
#include "buf.h"

static const struct {
    const char *plain, *coded;
} pairs[] = {
    {"", ""},
    {"f", "Zg=="},
    {"fo", "Zm8="},
    {"foo", "Zm9v"},
    {"foob", "Zm9vYg=="},
    {"\xff\xfe\xfd", "//79"},
    {"\xfb\xef\xbe", "++++"},
};

static void both_ways(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        struct buf coded BUF_AUTO = BUF_INIT;
        struct buf plain BUF_AUTO = BUF_INIT;
        base64_put(&coded, pairs[i].plain, strlen(pairs[i].plain));
        assert_string_equal(buf_str(&coded), pairs[i].coded);
        assert_int_equal(coded.len, base64_length(strlen(pairs[i].plain)));
        assert_true(base64_get(&plain, coded.data, coded.len));
        assert_string_equal(buf_str(&plain), pairs[i].plain);
    }
}

static void every_byte_comes_back(void **state)
{
    (void)state;
    char all[256 * 3 + 1];
    struct buf coded BUF_AUTO = BUF_INIT;
    struct buf plain BUF_AUTO = BUF_INIT;
    for (size_t i = 0; i < sizeof all; i++)
        all[i] = (char)(i * 7);
    base64_put(&coded, all, sizeof all);
    assert_true(base64_get(&plain, coded.data, coded.len));
    assert_int_equal(plain.len, sizeof all);
    assert_memory_equal(plain.data, all, sizeof all);
}

static void what_is_none_is_refused(void **state)
{
    static const char *const wrong[] = {"Z",      "Zg=",  "Zg",   "Zg===",    "=Zg=", "Z===", "====",
                                        "Zm9v\n", "Zm 8", "Zm-_", "Zg==Zg==", "Zh==", "Zm9=", "Zm\xc3\xa9"};
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct buf plain BUF_AUTO = BUF_INIT;
        assert_false(base64_get(&plain, wrong[i], strlen(wrong[i])));
    }
    struct buf plain BUF_AUTO = BUF_INIT;
    assert_false(base64_get(&plain, "Zm\0v", 4));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_ways),
        cmocka_unit_test(every_byte_comes_back),
        cmocka_unit_test(what_is_none_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
