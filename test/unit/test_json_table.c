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

static void test_units(void **state)
{
    static const char *const columns[] = {"age_s", "memory_kb", "unread_stdout", "bytes_in", "ids", NULL};
    static const char list[] =
        "[{\"age_s\":0.045,\"memory_kb\":652,\"unread_stdout\":0,\"bytes_in\":1023,\"ids\":1},"
        "{\"age_s\":1.8,\"memory_kb\":2355,\"unread_stdout\":588835,\"bytes_in\":1048576,\"ids\":22},"
        "{\"age_s\":1800,\"memory_kb\":1048575,\"unread_stdout\":null,\"bytes_in\":99999999999,\"ids\":3},"
        "{\"age_s\":90061.5,\"memory_kb\":null,\"unread_stdout\":1024,\"bytes_in\":10240,\"ids\":4}]";
    struct buf out BUF_AUTO = BUF_INIT;
    (void)state;
    check(list, columns,
          "age     memory    unread_stdout  bytes_in  ids\n"
          "45 ms   652 KiB   0 B            1023 B    1\n"
          "1.8 s   2.3 MiB   575 KiB        1.0 MiB   22\n"
          "30 min  1024 MiB  -              93 GiB    3\n"
          "1.0 d   -         1.0 KiB        10 KiB    4\n");
    json_table_exact(&out, (struct span){list, strlen(list)},
                     (const char *const[]){"age_s", "memory_kb", NULL});
    assert_string_equal(out.data,
                        "age_s    memory_kb\n0.045    652\n1.8      2355\n1800     1048575\n90061.5  -\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_columns),
        cmocka_unit_test(test_text_of_any_kind),
        cmocka_unit_test(test_units),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
