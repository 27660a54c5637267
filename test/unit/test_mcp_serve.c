/* What no client can easily be made to show: the frames of workers, the words of schemas, images by their
 * first bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>

#include "commands/mcp_serve/mcp_tools.h"
#include "commands/mcp_serve/serve.h"

static void words(void **state)
{
    (void)state;
    assert_true(mcp_word_is_of("a|bc|d", "a", 1));
    assert_true(mcp_word_is_of("a|bc|d", "bc", 2));
    assert_true(mcp_word_is_of("a|bc|d", "d", 1));
    assert_false(mcp_word_is_of("a|bc|d", "b", 1));
    assert_false(mcp_word_is_of("a|bc|d", "", 0));
    assert_false(mcp_word_is_of("a|bc|d", "a|bc", 4));
    assert_false(mcp_word_is_of("a|bc|d", "bcd", 3));
}

/* Every default must be one that the tool's own bounds allow, and every argument must have its place. */
static void tables(void **state)
{
    (void)state;
    for (const struct mcp_tool *t = mcp_tools; t->name; t++) {
        struct param list[32];
        struct args args;
        assert_true(t->n_fields <= 32 && t->run && t->title &&
                    t->description); /* and no result where it is text or a picture */
        mcp_tool_params(t, list, &args);
        for (size_t i = 0; i < t->n_fields; i++) {
            const struct field *f = &t->fields[i];
            assert_true(f->key && f->about && list[i].key == f->key);
            bool number = f->type == PARAM_INT || f->type == PARAM_NUMBER;
            if (number && f->otherwise > 0 && (list[i].min != 0 || list[i].max != 0))
                assert_true(f->otherwise >= list[i].min && f->otherwise <= list[i].max);
            assert_true(!f->words || f->type == PARAM_TEXT);
            assert_false(f->required && f->otherwise);
        }
        for (const struct mcp_tool *other = mcp_tools; other < t; other++)
            assert_string_not_equal(t->name, other->name);
    }
}

static void check_list(enum revision r, bool schemas)
{
    struct serve_offer offer = {.tools = "*", .prefix = "", .schemas = schemas};
    struct buf out BUF_AUTO = BUF_INIT;
    struct span tools, one, value;
    size_t n = 0, with_schema = 0;
    buf_addc(&out, '{');
    put_tools(&out, r, &offer);
    buf_addc(&out, '}');
    assert_int_equal(json_check(span_of(&out), NULL), 0);
    assert_true(json_member(span_of(&out), "tools", &tools, NULL));
    for (size_t at = 0; json_element(tools, &at, &one); n++) {
        assert_true(json_member(one, "inputSchema", &value, NULL));
        with_schema += json_member(one, "outputSchema", &value, NULL);
        assert_int_equal(json_member(one, "annotations", &value, NULL), r >= REVISION_2025_03_26);
    }
    assert_true(n > 20);
    assert_int_equal(with_schema > 0, schemas && r >= REVISION_2025_06_18);
    assert_true(with_schema < n); /* what is text or a picture has none */
}

static void lists_are_json(void **state)
{
    (void)state;
    for (enum revision r = REVISION_2024_11_05; r < REVISION_END; r++) {
        check_list(r, false);
        check_list(r, true);
    }
}

static void images(void **state)
{
    (void)state;
    assert_string_equal(mcp_image_type("\x89PNG\r\n\x1a\n", 8), "image/png");
    assert_string_equal(mcp_image_type("\xff\xd8\xff", 3), "image/jpeg");
    assert_string_equal(mcp_image_type("GIF87a", 6), "image/gif");
    assert_string_equal(mcp_image_type("RIFF....WEBP", 12), "image/webp");
    assert_null(mcp_image_type("RIFF....WAVE", 12));
    assert_null(mcp_image_type("\x89PNG\r\n\x1a", 7));
    assert_null(mcp_image_type("", 0));
}

/* The newest megabyte is kept, from the begin of a character on. */
static void output_of_jobs(void **state)
{
    (void)state;
    struct job_note note = {.pid = 1, .out = {BUF_INIT, BUF_INIT}};
    static char much[(1 << 20) + 1];
    static const char two[] = {'\xc3', '\xa4'};
    for (size_t i = 0; i + 1 < sizeof much; i += 2)
        memcpy(much + i, two, sizeof two);
    much[sizeof much - 1] = 'x';
    job_note_add(&note, 0, (struct span){much, sizeof much});
    assert_int_equal(note.omitted[0], 2);
    assert_int_equal(note.out[0].len, (1 << 20) - 1);
    assert_memory_equal(note.out[0].data, "\xc3\xa4", 2);
    job_note_add(&note, 1, (struct span){"", 0});
    assert_int_equal(note.out[1].len + note.omitted[1], 0);
    buf_release(&note.out[0]);
    buf_release(&note.out[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words),  cmocka_unit_test(tables),         cmocka_unit_test(lists_are_json),
        cmocka_unit_test(images), cmocka_unit_test(output_of_jobs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
