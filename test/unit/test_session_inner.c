#include "support.h"

#include "tools/bash_session/session_inner.h"

static bool is_prompt(const char *printed, enum inner_kind *kind)
{
    struct buf text BUF_AUTO = BUF_INIT;
    buf_adds(&text, printed);
    return inner_is_prompt(&text, kind);
}

static void prompts_are_known_by_their_end(void **state)
{
    (void)state;
    static const char *const shells[] = {"$ ",   "root@h:/# ", "some\nbash-5.2$ ", "bash-5.2# ",
                                         "vm% ", "> ",         "~ \u276f "};
    static const char *const others[] = {
        "",          "\n",       "name? ", "[sudo] password: ", " 45%", "=====> ",
        "######## ", "$ \nsome", "(gdb) ", "sure? [y/N] "};
    enum inner_kind kind;
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++)
        assert_true(is_prompt(shells[i], &kind) && kind == INNER_SH);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_false(is_prompt(others[i], &kind));
    assert_true(is_prompt(">>> ", &kind) && kind == INNER_PYTHON);
    assert_true(is_prompt("text\nIn [12]: ", &kind) && kind == INNER_PYTHON);
}

static void take(struct inner *in, const char *word, const char *rest, bool taken)
{
    struct buf text BUF_AUTO = BUF_INIT;
    buf_addf(&text, "%s%s", word, rest);
    assert_int_equal(inner_take(in, buf_str(&text)), taken);
}

static void only_notes_with_the_word_count(void **state)
{
    (void)state;
    struct inner in = {0};
    take(&in, "", ";B;;", false);
    inner_begin(&in, INNER_SH);
    char word[CHANNEL_SECRET + 1];
    memcpy(word, in.word, sizeof word);
    take(&in, "00000000000000000000000000000000", ";B;;", false);
    take(&in, word, ";E;0;/", false); /* it has not begun */
    take(&in, word, ";B", true);
    take(&in, word, "", false);
    take(&in, word, ";E", false);
    take(&in, word, ";E;7;/a;b", true);
    assert_int_equal(in.status, 7);
    assert_string_equal(in.cwd, "/a;b");
    take(&in, word, ";P;0;/", false); /* once is enough */
    inner_begin(&in, INNER_PYTHON);
    take(&in, word, ";B", false); /* of the one before */
    assert_string_not_equal(in.word, word);
    inner_release(&in);
}

static void no_key_is_in_what_is_typed(void **state)
{
    (void)state;
    for (int kind = 0; kind < INNER_KINDS; kind++) {
        struct inner in = {0};
        struct buf text BUF_AUTO = BUF_INIT;
        inner_begin(&in, kind);
        inner_put(&text, &in, "a\tb\033[A\003!\"'\x7f\n\xc3\xa9", 14);
        for (size_t i = 0; i < text.len; i++)
            assert_true(text.data[i] == '\n' || (text.data[i] >= ' ' && text.data[i] < 0x7F));
        inner_release(&in);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prompts_are_known_by_their_end),
        cmocka_unit_test(only_notes_with_the_word_count),
        cmocka_unit_test(no_key_is_in_what_is_typed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
