#include "support.h"

#include "host/release/release_record.h"

#define A64 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B64 "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

static struct span text_of(const char *s)
{
    return (struct span){s, strlen(s)};
}

static void a_record_is_found_at_the_end_only(void **state)
{
    (void)state;
    static const struct {
        const char *file;
        size_t size;
    } cases[] = {
        {"program" A64 "  x\n#toolbox sums 00000091\n", 91},
        {"program#toolbox sums 00000023\n", 23},
        {"#toolbox sums 00000024\n", 0}, /* longer than the file */
        {"program#toolbox sums 00000022\n", 0},
        {"program#toolbox sums 00065537\n", 0},
        {"program#toolbox sums 0000023 \n", 0},
        {"program#toolbox sums 00000023", 0},
        {"program#toolbox sums 00000023\n\n", 0},
        {"program#toolbox pack 00000023\n", 0},
        {"program#toolbox sums 0000-023\n", 0},
        {"", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(record_size(text_of(cases[i].file), "sums"), cases[i].size);
    struct span lines = record_lines(text_of(cases[0].file), "sums");
    assert_true(span_is(lines, A64 "  x\n"));
    assert_null(record_lines(text_of(cases[8].file), "sums").s);
}

static void one_sum_of_a_name(void **state)
{
    (void)state;
    char hex[SHA256_HEX_SIZE];
    assert_true(sums_find(text_of(A64 "  one\n" B64 " *two.x\n"), "two.x", hex));
    assert_string_equal(hex, B64);
    static const char *const refused[] = {
        "",
        A64 "  other\n",
        A64 "  one\n" B64 "  one\n", /* which one? */
        A64 "  one",                 /* cut off */
        A64 " one\n",
        A64 "  one\n\n",
        A64 "  one\r\n",
        A64 "  one\nrubbish\n",
        "A" A64 "  one\n",
        A64 "  one\n" B64 "  ../two\n",
        A64 "  one\n" B64 "  .two\n",
        A64 "  one\n" B64 "  \n",
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        assert_false(sums_find(text_of(refused[i]), "one", hex));
    char upper[] = A64 "  one\n";
    upper[3] = 'A';
    assert_false(sums_find(text_of(upper), "one", hex));
    upper[3] = '\0';
    assert_false(sums_find((struct span){upper, sizeof upper - 1}, "one", hex));
}

static void lines_of_a_pack(void **state)
{
    (void)state;
    struct span rest = text_of("12 one\n3456789 two\n");
    struct packed packed;
    assert_int_equal(pack_next(&rest, &packed), 1);
    assert_int_equal(packed.size, 12);
    assert_int_equal(pack_next(&rest, &packed), 1);
    assert_int_equal(packed.size, 3456789);
    assert_true(span_is(packed.name, "two"));
    assert_int_equal(pack_next(&rest, &packed), 0);
    static const char *const refused[] = {"0 one\n",  " one\n",           "12\n",      "12 \n", "12one\n",
                                          "-1 one\n", "1234567890 one\n", "12 o/ne\n", "12 one"};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        rest = text_of(refused[i]);
        assert_int_equal(pack_next(&rest, &packed), -1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_record_is_found_at_the_end_only),
        cmocka_unit_test(one_sum_of_a_name),
        cmocka_unit_test(lines_of_a_pack),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
