#include "support.h"

#include "json_table.h"

static void check(const char *list, const char *const *columns, const char *expected)
{
    struct buf out BUF_AUTO = BUF_INIT;
    struct span text = {list, strlen(list)};
    assert_int_equal(json_check(text, NULL), 0);
    json_table(&out, text, columns);
    assert_string_equal(buf_str(&out), expected);
}

static void test_columns(void **state)
{
    static const char *const columns[] = {"id", "name", "note", NULL};
    (void)state;
    check("[]", columns, "id  name  note\n");
    check(
        "[{\"id\":1,\"name\":\"a longer one\",\"note\":\"x\"},{\"note\":\"last\",\"id\":-20.5,\"more\":[1]}]",
        columns,
        "id     name          note\n"
        "1      a longer one  x\n"
        "-20.5  -             last\n");
    check("[{\"id\":true,\"name\":null,\"note\":{}}]", columns, "id    name  note\ntrue  -     -\n");
}

static void test_text_of_any_kind(void **state)
{
    static const char *const columns[] = {"a", "b", NULL};
    (void)state;
    /* width is counted in characters */
    check("[{\"a\":\"\\u00e4\\u00f6\",\"b\":\"1\"},{\"a\":\"abc\",\"b\":\"2\"}]", columns,
          "a    b\n\xC3\xA4\xC3\xB6   1\nabc  2\n");
    /* nothing speaks to the terminal, and every object is one line */
    check("[{\"a\":\"x\\n\\u001b[2J\\u0000\\u007f\",\"b\":\"\\u009b1m\\u00a0\"}]", columns,
          "a         b\nx  [2J    \x20 1m\xC2\xA0\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_columns),
        cmocka_unit_test(test_text_of_any_kind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
