#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "glob.h"

static const struct {
    const char *pattern, *yes[6], *no[6];
} cases[] = {
    {"*.c", {"a.c", ".c", "a.b.c"}, {"a.h", "d/a.c", "a.cc", ""}},
    {"a?c",
     {"abc", "a\xc3\xa9"
             "c"},
     {"ac", "abbc", "a/c"}},
    {"**/*.c", {"a.c", "d/a.c", "d/e/a.c"}, {"a.h", "d/a.h"}},
    {"src/**", {"src/", "src/a", "src/a/b"}, {"srcs/a", "a/src/b"}},
    {"src/**/x", {"src/x", "src/a/x", "src/a/b/x"}, {"src/ax", "x", "src/a/xy"}},
    {"a/**/b/**/c", {"a/b/c", "a/x/b/y/z/c"}, {"a/c", "a/b/cc"}},
    {"**", {"", "a", "a/b"}, {NULL}},
    {"a**b", {"ab", "axb"}, {"a/b"}},
    {"[a-c]x", {"ax", "cx"}, {"dx", "x", "[x"}},
    {"[!a-c]x", {"dx", "\xc3\xa9x"}, {"ax", "/x"}},
    {"[^a]", {"b"}, {"a"}},
    {"[]a]", {"]", "a"}, {"b"}},
    {"[a-]", {"a", "-"}, {"b"}},
    {"[\\]]", {"]"}, {"\\"}},
    {"[\\a]", {"a"}, {"\\"}},
    {"[\\--a]", {"-", "a", "A"}, {"b", ","}},
    {"[+-\\]]", {"+", "]", "A", "\\"}, {"^"}},
    {"[\xc3\xa0-\xc3\xbf]", {"\xc3\xa9"}, {"e"}},
    {"*.{c,h}", {"a.c", "a.h"}, {"a.{c,h}", "a.cc"}},
    {"{a,b{c,d}}e", {"ae", "bce", "bde"}, {"be", "e"}},
    {"{a\\,b,c}", {"a,b", "c"}, {"a", "b", "a\\"}},
    {"{a\\},c}", {"a}", "c"}, {"a", "a\\"}},
    {"{,x}a", {"a", "xa"}, {"ya"}},
    {"{**/,}a", {"a", "b/a"}, {"ba"}},
    {"\\*", {"*"}, {"a", "\\*"}},
    {"a\\{b", {"a{b"}, {"ab"}},
    {"", {""}, {"a"}},
    {"a/", {"a/"}, {"a"}},
    {"[!]]x", {"ax"}, {"]x", "x"}},
    {"[^]a]", {"b"}, {"]", "a"}},
    {"[!\\]]", {"a", "\\"}, {"]"}},
    {"[a\\]b]", {"a", "]", "b"}, {"\\", "ab"}},
    {"[a/]b", {"ab"}, {"/b"}},
    {"[a-\xc3\xbf]", {"z", "\xc3\xa9"}, {"A", "\xe2\x82\xac"}},
    {"{[,],b}c", {",c", "bc"}, {"c", "[c", "],bc"}},
    {"{[}],b}c", {"}c", "bc"}, {"[c", "c"}},
    {"{a{b,c},d}e", {"abe", "ace", "de"}, {"ae", "abde"}},
    {"{a,b},{c,d}", {"a,c", "b,d"}, {"a", "ac", "a,b"}},
    {"{a}", {"a"}, {"{a}", ""}},
    {"a}", {"a}"}, {"a"}},
    {"a,b", {"a,b"}, {"a", "b"}},
    {"{{{{{{{{a}}}}}}}}", {"a"}, {"{a}"}},
    {"*", {"", "a", ".a"}, {"a/", "/a", "a/b"}},
    {"a*/b", {"a/b", "ax/b"}, {"a/x/b", "ab"}},
    {"a?b", {"axb"}, {"a/b", "ab"}},
    {"**a", {"a", "ba"}, {"b/a", "ab"}},
    {"x**/y", {"x/y", "xa/y"}, {"x/a/y", "xy"}},
    {"a/**b", {"a/b", "a/cb"}, {"a/c/b"}},
    {"**/", {"", "a/", "a/b/"}, {"a"}},
    {"***", {"", "ab"}, {"a/b"}},
};

static void patterns(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_null(glob_check(cases[i].pattern));
        for (size_t k = 0; k < 6 && cases[i].yes[k]; k++)
            if (!glob_match(cases[i].pattern, cases[i].yes[k]))
                fail_msg("'%s' should match '%s'", cases[i].pattern, cases[i].yes[k]);
        for (size_t k = 0; k < 6 && cases[i].no[k]; k++)
            if (glob_match(cases[i].pattern, cases[i].no[k]))
                fail_msg("'%s' should not match '%s'", cases[i].pattern, cases[i].no[k]);
    }
}

static void wrong_patterns(void **state)
{
    static const char *const wrong[] = {"[a", "{a", "a\\", "{a,{b}", "[]", "{{{{{{{{{a}}}}}}}}}"};
    char long_one[3000];
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_non_null(glob_check(wrong[i]));
        glob_match(wrong[i], "abc"); /* and does no harm */
    }
    memset(long_one, 'a', sizeof long_one - 1);
    long_one[2001] = '\0';
    assert_non_null(glob_check(long_one));
    long_one[2000] = '\0';
    assert_null(glob_check(long_one));
    assert_true(glob_match(long_one, long_one));
}

/* What a choice makes together with what is behind it has a bound, too. */
static void long_choices(void **state)
{
    (void)state;
    static char pattern[5000], text[5000];
    for (size_t rest = 4090; rest < 4100; rest++) {
        snprintf(pattern, sizeof pattern, "{ab,c}%0*d", (int)rest, 0);
        snprintf(text, sizeof text, "ab%0*d", (int)rest, 0);
        assert_int_equal(glob_match(pattern, text), 2 + rest < 4096);
    }
}

static void time_is_bounded(void **state)
{
    (void)state;
    assert_false(
        glob_match("*a*a*a*a*a*a*a*a*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"));
    assert_false(
        glob_match("{a,a}{a,a}{a,a}{a,a}{a,a}{a,a}{a,a}{a,a}{a,a}{a,a}{a,a}{a,a}{a,a}{a,a}{a,a}{a,a}b",
                   "aaaaaaaaaaaaaaaac"));
    assert_false(glob_match("**/**/**/**/**/**/**/x", "a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/y"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patterns),
        cmocka_unit_test(wrong_patterns),
        cmocka_unit_test(long_choices),
        cmocka_unit_test(time_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
