#include <string.h>

#include "support.h"

#include "expression.h"
#include "mem.h"
#include "tools/file/search_text.h"

static void is_of(const char *pattern, const char *want)
{
    struct buf have BUF_AUTO = BUF_INIT;
    search_text_of(pattern, &have);
    if (strcmp(buf_str(&have), want) != 0)
        fail_msg("%s: \"%s\", not \"%s\"", pattern, buf_str(&have), want);
}

static void what_all_matches_have(void **state)
{
    (void)state;
    static const char *const of[][2] = {
        {"plain", "plain"},
        {"needle_[0-9]+_(20|40)$", "needle_"},
        {"a|b", ""},
        {"(a|b)cd", "cd"},
        {"abc?", "ab"},
        {"abc*def", "def"},
        {"abc+def", "abc"},
        {"abc{0,3}d", "ab"},
        {"ab{2}cde", "cde"},
        {"a\\.b", "a.b"},
        {"\\x41bc", ""},
        {"\\bword\\b", "word"},
        {"a\\tbc", "bc"},
        {"[]abc]de", "de"},
        {"[^]abc]de", "de"},
        {"[[:alpha:]]de", "de"},
        {"((a)(b[)]c))de", "de"},
        {"(a\\)b|c)de", "de"},
        {"^abc$", "abc"},
        {"x.yz", "yz"},
        {"gr\303\266\303\237e", "gr"},
        {"ab+*c", "a"},
        {"a\\*b", "a*b"},
        {"()ab", "ab"},
        {"ab)c", "ab)c"},
        {"a\\\\b", "a\\b"},
        {"[a\\]bc", "bc"},
        {"a]b}", "a]b}"},
    };
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        is_of(of[i][0], of[i][1]);
}

/* Whatever a random expression matches has its text, and that is found where it is. */
static void what_matches_has_it(void **state)
{
    (void)state;
    static const char *const pieces[] = {"a",     "b",    "ab",   "\\.", ".",     "[ab]",  "[]b]",
                                         "(a|b)", "(ab)", "a{2}", "+",   "*",     "?",     "|",
                                         "^",     "$",    "\\w",  "\\<", "\\x61", "{0,2}", "B"};
    unsigned long long n = 1;
    for (int round = 0; round < 60000; round++) {
        char pattern[100] = "", line[40];
        const char *wrong;
        size_t length = 0;
#define NEXT(of) ((n = n * 6364136223846793005ULL + 1442695040888963407ULL) >> 33) % (of)
        for (size_t i = NEXT(7) + 1; i > 0; i--)
            strcat(pattern, pieces[NEXT(sizeof pieces / sizeof *pieces)]);
        for (size_t i = NEXT(30); i > 0; i--)
            line[length++] = "ab.]AB"[NEXT(6)];
        bool any_case = NEXT(2);
        struct expression *e = expression_make(pattern, any_case, &wrong);
        if (!e)
            continue;
        struct buf text BUF_AUTO = BUF_INIT;
        search_text_of(pattern, &text);
        for (size_t i = 0; any_case && i < text.len; i++)
            text.data[i] |= text.data[i] == 'B' ? 0x20 : 0;
        const struct search_text t = {buf_str(&text), text.len, any_case};
        if (text.len > 0 && expression_find(e, line, length) >= 0 && !search_text_find(&t, line, length))
            fail_msg("%s in %.*s: no \"%s\"", pattern, (int)length, line, buf_str(&text));
        expression_free(e);
    }
}

static void it_is_found_wherever_it_is(void **state)
{
    (void)state;
    for (size_t room = 0; room < 70; room++)
        for (size_t at = 0; at <= room; at++)
            for (size_t n = 1; at + n <= room && n < 20; n++) {
                /* exactly so much memory: what reads behind it is seen */
                char *in MEM_AUTO = mem_alloc(room + 1);
                char text[20];
                memset(in, 'a', room);
                memset(text, 'a', sizeof text);
                in[at] = text[0] = 'x';
                in[at + n - 1] = text[n - 1] = n > 1 ? 'y' : 'x';
                char *exact MEM_AUTO = mem_dup(in, room);
                const struct search_text t = {text, n, false};
                assert_ptr_equal(search_text_find(&t, exact, room), exact + at);
                exact[at] = 'X';
                assert_null(search_text_find(&t, exact, room));
                const struct search_text any = {text, n, true};
                if (n > 1)
                    assert_ptr_equal(search_text_find(&any, exact, room), exact + at);
            }
    assert_null(search_text_find(&(struct search_text){"abc", 3, false}, "ab", 2));
    assert_null(search_text_find(&(struct search_text){"@", 1, true}, "`", 1));
    assert_null(search_text_find(&(struct search_text){"[", 1, true}, "{", 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_all_matches_have),
        cmocka_unit_test(what_matches_has_it),
        cmocka_unit_test(it_is_found_wherever_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
