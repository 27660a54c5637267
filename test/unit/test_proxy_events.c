#include "support.h"

#include "mem.h"
#include "commands/model_proxy/proxy_events.h"
#include "commands/model_proxy/proxy_streams.h"

static struct span text_of(const char *s)
{
    return (struct span){s, strlen(s)};
}

/* What comes of a plan, made in steps of so many bytes. */
static void check(struct events *plan, size_t step, const char *expected)
{
    struct buf out BUF_AUTO = BUF_INIT;
    while (events_next(plan, &out, step))
        ;
    assert_string_equal(buf_str(&out), expected);
    plan->at_part = plan->at_text = plan->at_span = 0;
    plan->number = 0;
}

static void test_parts_in_order(void **state)
{
    static const size_t steps[] = {1, 7, 4096};
    char *big = mem_zalloc(1001);
    memset(big, 'b', 1000);
    char *expected = mem_printf("n0 %s n1 small end n2", big);
    struct events plan;
    (void)state;
    events_init(&plan);
    buf_adds(&plan.text, "n" EVENTS_NUMBER " ");
    events_put(&plan, text_of(big));
    buf_adds(&plan.text, " n" EVENTS_NUMBER " ");
    events_put(&plan, text_of("small"));
    buf_adds(&plan.text, " end n" EVENTS_NUMBER);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        check(&plan, steps[i], expected);
    events_release(&plan);
    free(expected);
    free(big);
}

static void test_an_empty_string_is_no_piece(void **state)
{
    struct events plan;
    (void)state;
    events_init(&plan);
    buf_adds(&plan.text, "a");
    size_t from = plan.text.len;
    buf_adds(&plan.text, "<" EVENTS_PIECE ">");
    events_run(&plan, from, text_of("\"\""));
    from = plan.text.len;
    buf_adds(&plan.text, "<" EVENTS_PIECE EVENTS_NUMBER ">");
    char copied[] = "\"x\"";
    events_run_copy(&plan, from, text_of(copied));
    copied[1] = 'y'; /* it had a copy */
    check(&plan, 1, "a<\"x\"0>");
    events_release(&plan);
}

/* Each piece is a string by itself, none is longer than asked for by more than a character, and together they
 * are the string. */
static void check_pieces(const char *string)
{
    struct events plan;
    struct buf out BUF_AUTO = BUF_INIT, whole BUF_AUTO = BUF_INIT, pieces BUF_AUTO = BUF_INIT;
    events_init(&plan);
    buf_adds(&plan.text, EVENTS_PIECE "\n");
    events_run(&plan, 0, text_of(string));
    while (events_next(&plan, &out, 100))
        ;
    for (char *line = out.data, *end; line && *line; line = end + 1) {
        end = strchr(line, '\n');
        struct span piece = {line, (size_t)(end - line)};
        assert_int_equal(json_check(piece, NULL), 0);
        assert_true(piece.n <= 48 + 12 + 2);
        assert_true(json_string_text(piece, &pieces));
    }
    assert_true(json_string_text(text_of(string), &whole));
    assert_int_equal(whole.len, pieces.len);
    assert_memory_equal(buf_str(&whole), buf_str(&pieces), whole.len);
    events_release(&plan);
}

static void test_pieces_are_never_cut_inside(void **state)
{
    static const char *const units[] = {"a",       "\\n",      "\\u00e9",      "\\uD83D\\uDE00",
                                        "\\ud83d", "\xC3\xA9", "\xE6\xBC\xA2", "\xF0\x9F\x98\x80",
                                        "\\\\",    "\\\"",     "\\uD83Dx",     "\\ude00"};
    (void)state;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        for (size_t shift = 0; shift < 13; shift++) {
            struct buf string BUF_AUTO = BUF_INIT;
            buf_addf(&string, "\"%.*s", (int)shift, "xxxxxxxxxxxxx");
            for (int n = 0; n < 60; n++)
                buf_adds(&string, units[i]);
            buf_addc(&string, '"');
            check_pieces(buf_str(&string));
        }
}

static void test_objects_with_other_members(void **state)
{
    static const char *const names[] = {"status", "x", NULL};
    struct events plan;
    (void)state;
    events_init(&plan);
    events_put_object(&plan, text_of("{\"a\":1,\"st\\u0061tus\":\"old\",\"b\":[2]}"), names,
                      "\"status\":\"new\"");
    check(&plan, 1, "{\"a\":1,\"b\":[2],\"status\":\"new\"}");
    events_release(&plan);
    events_put_object(&plan, text_of("{}"), names, "\"x\":0");
    check(&plan, 1, "{\"x\":0}");
    events_release(&plan);
    events_put_object(&plan, text_of("{\"x\":0}"), names, "");
    check(&plan, 1, "{}");
    events_release(&plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts_in_order),
        cmocka_unit_test(test_an_empty_string_is_no_piece),
        cmocka_unit_test(test_pieces_are_never_cut_inside),
        cmocka_unit_test(test_objects_with_other_members),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
