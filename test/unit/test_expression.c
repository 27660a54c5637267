#include <ctype.h>
#include <regex.h>
#include <string.h>

#include "support.h"

#include "expression.h"
#include "mem.h"

/* -2: it is no expression */
static ptrdiff_t find(const char *pattern, bool ignore_case, const char *line)
{
    const char *wrong = NULL;
    struct expression *e = expression_make(pattern, ignore_case, &wrong);
    if (!e) {
        assert_non_null(wrong);
        return -2;
    }
    ptrdiff_t at = expression_find(e, line, strlen(line));
    assert_int_equal(expression_find(e, line, strlen(line)), at); /* nothing stays from the last time */
    expression_free(e);
    return at;
}

static void where_it_ends(void **state)
{
    (void)state;
    static const struct {
        const char *pattern, *line;
        size_t end;
    } cases[] = {
        {"b+", "aabb", 3}, {"b+$", "aabb", 4}, {"abcd|bc", "abcd", 4}, {"a.c", "xabc", 4}, {"x*", "ab", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *wrong;
        struct expression *e = expression_make(cases[i].pattern, false, &wrong);
        assert_non_null(e);
        assert_true(expression_find(e, cases[i].line, strlen(cases[i].line)) >= 0);
        assert_int_equal(expression_match_end(e), cases[i].end);
        expression_free(e);
    }
}

struct example {
    const char *pattern, *line;
    ptrdiff_t at;
    bool ignore_case;
};

static void check(const struct example *examples, size_t n)
{
    for (const struct example *x = examples; x < examples + n; x++)
        if (find(x->pattern, x->ignore_case, x->line) != x->at)
            fail_msg("%s in \"%s\": %td, not %td", x->pattern, x->line,
                     find(x->pattern, x->ignore_case, x->line), x->at);
}

static void what_it_finds(void **state)
{
    (void)state;
    static const struct example examples[] = {
        {.pattern = "b+", .line = "aabb", .at = 2},
        {.pattern = "", .line = "abc", .at = 0},
        {.pattern = "$", .line = "abc", .at = 3},
        {.pattern = "^$", .line = "", .at = 0},
        {.pattern = "c|ab", .line = "xabc", .at = 1},
        {.pattern = "abcd|bc", .line = "abcx", .at = 1},
        {.pattern = "a.*z|bc", .line = "abc", .at = 1},
        {.pattern = "(|a)b", .line = "cab", .at = 1},
        {.pattern = "a|", .line = "xa", .at = 0},
        {.pattern = "()*x", .line = "yx", .at = 1},
        {.pattern = "(a*)+b", .line = "caab", .at = 1},
        {.pattern = "(a*)*$", .line = "aab", .at = 3},
        {.pattern = "a{3}", .line = "aabaaa", .at = 3},
        {.pattern = "^a{2,3}b", .line = "aaaab", .at = -1},
        {.pattern = "xa{,1}b", .line = "xaabxb", .at = 4},
        {.pattern = "a{0}b", .line = "ab", .at = 1},
        {.pattern = "(ab){2,}c", .line = "abcababc", .at = 3},
        {.pattern = "a{1}{2}", .line = "baa", .at = 1},
        {.pattern = "a)", .line = "xa)", .at = 1},
        {.pattern = "[]a]+$", .line = "x]a]", .at = 1},
        {.pattern = "[^]a]", .line = "]ab", .at = 2},
        {.pattern = "[a-]x", .line = "-x", .at = 0},
        {.pattern = "[[:digit:]-]{3}", .line = "a1-2", .at = 1},
        {.pattern = "[[:upper:]]", .line = "ab", .at = -1},
        {.pattern = "[[:upper:]]", .line = "1b", .at = 1, .ignore_case = true},
        {.pattern = "[^a]", .line = "Aab", .at = 2, .ignore_case = true},
        {.pattern = "HeLLo", .line = "say hEllO", .at = 4, .ignore_case = true},
        {.pattern = "[\\w]",
         .line = "aw",
         .at = 1}, /* as POSIX has it: a backslash is nothing special there */
        {.pattern = "\\w+\\W\\w", .line = "-ab c", .at = 1},
        {.pattern = "\\d\\D\\s\\S", .line = "1x 2", .at = 0},
        {.pattern = "\\bon\\b", .line = "onto on", .at = 5},
        {.pattern = "\\Bn", .line = "no an", .at = 4},
        {.pattern = "o\\>", .line = "on to", .at = 4},
        {.pattern = "\\<o", .line = "to on", .at = 3},
        {.pattern = "\\x41\\x{20ac}", .line = "A\xE2\x82\xAC", .at = 0},
        {.pattern = "a\\tb", .line = "a\tb", .at = 0},
        {.pattern = "\\.", .line = "a.", .at = 1},
        {.pattern = "^\xC3\xA4.\xC3\xBC$", .line = "\xC3\xA4\xC3\xB6\xC3\xBC", .at = 0},
        {.pattern = "[\xC3\xA4\xC3\xB6]", .line = "\xC3\xBC\xC3\xB6", .at = 2},
        {.pattern = "[\xC3\xA0-\xC3\xBF]$", .line = "\xC3\x80\xC3\xA9", .at = 2},
        {.pattern = "caf\\b", .line = "caf\xC3\xA9", .at = -1},
        {.pattern = "^.\xC3\xA9$", .line = "\xFF\xC3\xA9", .at = 0},
        {.pattern = "[[:alpha:]]", .line = "1\xFF\xC3\xA9", .at = 2},
    };
    check(examples, sizeof examples / sizeof *examples);
}

static void what_it_finds_at_the_edges(void **state)
{
    (void)state;
    static const struct example examples[] = {
        {.pattern = "^[a:b]{3}$", .line = "a:b", .at = 0},
        {.pattern = "^[a.]{2}$", .line = "a.", .at = 0},
        {.pattern = "^[a=]{2}$", .line = "=a", .at = 0},
        {.pattern = "^[[a]{2}$", .line = "[a", .at = 0},
        {.pattern = "^[[-]]$", .line = "-]", .at = 0},
        {.pattern = "[a-c-e]", .line = "d-", .at = 1},
        {.pattern = "[^^]", .line = "^a", .at = 1},
        {.pattern = "[b-d]", .line = "aeC", .at = 2, .ignore_case = true},
        {.pattern = "[B-D]", .line = "AEc", .at = 2, .ignore_case = true},
        {.pattern = "[Y-b]", .line = "cXB", .at = 2, .ignore_case = true},
        {.pattern = "[Y-b]", .line = "cXA", .at = 2, .ignore_case = true},
        {.pattern = "[Y-b]", .line = "cxz", .at = 2, .ignore_case = true},
        {.pattern = "[0-9]", .line = "pPx", .at = -1, .ignore_case = true},
        {.pattern = "[[-`]", .line = "{;", .at = -1, .ignore_case = true},
        {.pattern = "\\x4142", .line = "xA42", .at = 1},
        {.pattern = "\\x9x", .line = "a\tx", .at = 1},
        {.pattern = "\\x{10ffff}", .line = "a\xF4\x8F\xBF\xBF", .at = 1},
        {.pattern = "\\x{000041}", .line = "xA", .at = 1},
        {.pattern = "\\n\\r\\f\\a\\e\\t", .line = "x\n\r\f\a\033\t", .at = 1},
        {.pattern = "\\0", .line = "10", .at = 1},
        {.pattern = "\\:", .line = "1:", .at = 1},
        {.pattern = "a{,2}$", .line = "aaa", .at = 1},
        {.pattern = "a{2,}$", .line = "aba", .at = -1},
        {.pattern = "^a{0,}$", .line = "", .at = 0},
        {.pattern = "^(a|b){0,1}c", .line = "abc", .at = -1},
        {.pattern = "^a{10}$", .line = "aaaaaaaaaa", .at = 0},
        {.pattern = "^a{9}$", .line = "aaaaaaaaaa", .at = -1},
        {.pattern = "(a|b|c)+d", .line = "xabcd", .at = 1},
        {.pattern = "\\>", .line = "on", .at = 2},
        {.pattern = "\\<", .line = "-on", .at = 1},
        {.pattern = "\\b", .line = "--", .at = -1},
        {.pattern = "\\B", .line = "a", .at = -1},
        {.pattern = "\\B", .line = "-", .at = 0},
        {.pattern = "\\bb", .line = "ab-b", .at = 3},
        {.pattern = "^b", .line = "ab", .at = -1},
        {.pattern = "\\W", .line = "a\xC3\xA9\xFF", .at = 3},
        {.pattern = ".", .line = "\xFF", .at = 0},
        {.pattern = "a)b", .line = "a)b", .at = 0},
        {.pattern = "(a))b", .line = "a)b", .at = 0},
    };
    check(examples, sizeof examples / sizeof *examples);
}

static void what_is_no_expression(void **state)
{
    (void)state;
    static const char *const patterns[] = {
        "(",        "(a",          "((a)",
        "[",        "[a",          "[]",
        "[a-",      "[b-a]",       "[[:alpha:",
        "[[:no:]]", "[[:alpha]",   "[[=a=]]",
        "[[.a.]]",  "*",           "a|*",
        "(+a)",     "a{",          "a{}",
        "a{,}",     "a{1",         "a{2,1}",
        "a{256}",   "a{1,256}",    "a{x}",
        "{1}",      "\\",          "(a)\\1",
        "\\x",      "\\xg",        "\\x{}",
        "\\x{41",   "\\x{110000}", "\\x{99999999999}",
    };
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
        if (find(patterns[i], false, "a") != -2)
            fail_msg("%s is taken for one", patterns[i]);
}

static int is_word(int c)
{
    return isalnum(c) || c == '_';
}

static int is_space(int c)
{
    return isspace(c);
}

static void classes_are_those_of_c(void **state)
{
    (void)state;
    static const struct {
        const char *pattern;
        int (*is)(int c);
        bool beyond; /* all characters beyond ASCII belong to it */
    } classes[] = {
        {"[[:alpha:]]", isalpha, true},  {"[[:digit:]]", isdigit, false}, {"[[:alnum:]]", isalnum, true},
        {"[[:upper:]]", isupper, false}, {"[[:lower:]]", islower, false}, {"[[:space:]]", isspace, false},
        {"[[:blank:]]", isblank, false}, {"[[:punct:]]", ispunct, false}, {"[[:print:]]", isprint, true},
        {"[[:graph:]]", isgraph, true},  {"[[:cntrl:]]", iscntrl, false}, {"[[:xdigit:]]", isxdigit, false},
        {"[[:word:]]", is_word, true},   {"\\w", is_word, true},          {"\\s", is_space, false},
        {"\\d", isdigit, false},
    };
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
        for (int c = 1; c < 128; c++)
            if ((find(classes[i].pattern, false, (char[]){(char)c, '\0'}) == 0) != (classes[i].is(c) != 0))
                fail_msg("%s and character %d", classes[i].pattern, c);
        assert_int_equal(find(classes[i].pattern, false, "\xC2\x80"), classes[i].beyond ? 0 : -1);
        assert_int_equal(find(classes[i].pattern, false, "\xF4\x8F\xBF\xBF"), classes[i].beyond ? 0 : -1);
        assert_int_equal(find(classes[i].pattern, false, "\xFF"), -1);
    }
}

static void nul_is_a_character(void **state)
{
    (void)state;
    const char *wrong;
    struct expression *e = expression_make("a.b$", false, &wrong);
    assert_int_equal(expression_find(e, "xa\0b", 4), 1);
    assert_int_equal(expression_find(e, "xa\0bc", 4), 1); /* and the line ends where it ends */
    assert_int_equal(expression_find(e, "xa\0bc", 5), -1);
    expression_free(e);
    expression_free(NULL);
}

static void parentheses_have_a_depth(void **state)
{
    (void)state;
    char pattern[2 * 201 + 2];
    for (int depth = 200; depth <= 201; depth++) {
        memset(pattern, '(', (size_t)depth);
        pattern[depth] = 'a';
        memset(pattern + depth + 1, ')', (size_t)depth);
        pattern[2 * depth + 1] = '\0';
        assert_int_equal(find(pattern, false, "xa"), depth == 200 ? 1 : -2);
    }
    assert_int_equal(find("^a{255}$", false, "a"), -1); /* as many as there may be */
}

/* Neither memory nor time without bounds, nor the stack. */
static void bounds(void **state)
{
    (void)state;
    enum { N = 100000 };
    char *many MEM_AUTO = mem_zalloc(N + 1);
    assert_int_equal(find("((a{1,200}){1,200}){1,200}", false, "a"), -2);
    assert_int_equal(find("((((((((((a*)*)*)*)*)*)*)*)*)*)*b", false, "aab"), 0);
    memset(many, '(', N);
    assert_int_equal(find(many, false, "a"), -2);
    memset(many, '*', N);
    many[0] = 'a';
    assert_int_equal(find(many, false, "xa"), -2); /* more steps than there may be */
    memset(many, 'a', N);
    assert_int_equal(find("(a*)*(a*)*(a|b|ab)*c", false, many), -1);
    assert_int_equal(find("(a|aa)+$", false, many), 0);
}

/* ---- beside the machine's own ---- */

static unsigned chosen;

static unsigned choose(unsigned n)
{
    chosen = chosen * 1103515245u + 12345u;
    return (chosen >> 16) % n;
}

static void put(char *to, size_t size, const char *text)
{
    size_t n = strlen(to);
    snprintf(to + n, size - n, "%s", text);
}

enum { DEPTH = 2 };

/* Anchors and edges at the top alone: libc's own goes wrong where they are repeated. */
static void random_pattern(char *to, size_t size, unsigned depth)
{
    static const char *const atoms[] = {"a",           "b",   "c",   ".", "[ab]", "[^a]",
                                        "[[:alpha:]]", "\\w", "\\b", "^", "$",    "\\W"};
    static const char *const repeats[] = {"*", "+", "?", "{2}", "{1,3}", "{0,2}", "{2,}"};
    for (unsigned i = 1 + choose(3); i > 0; i--) {
        bool group = depth > 0 && choose(3) == 0;
        unsigned atom = choose(depth == DEPTH ? 12 : 8);
        put(to, size, group ? "(" : atoms[atom]);
        if (group) {
            random_pattern(to, size, depth - 1);
            put(to, size, choose(2) ? "|" : "");
            random_pattern(to, size, depth - 1);
            put(to, size, ")");
        }
        if ((group || atom < 8) && choose(2) == 0)
            put(to, size, repeats[choose(7)]);
    }
}

static void as_the_machine_has_it(void **state)
{
    (void)state;
    static const char *const letters[] = {"a", "b", "c", "A", " ", "-"};
    for (unsigned round = 0; round < 20000; round++) {
        char pattern[256] = "", line[16] = "";
        regex_t regex;
        regmatch_t at;
        random_pattern(pattern, sizeof pattern, DEPTH);
        for (unsigned i = choose(12); i > 0; i--)
            put(line, sizeof line, letters[choose(6)]);
        bool ignore_case = choose(2);
        if (strlen(pattern) > 200 ||
            regcomp(&regex, pattern, REG_EXTENDED | (ignore_case ? REG_ICASE : 0)) != 0)
            continue;
        ptrdiff_t want = regexec(&regex, line, 1, &at, 0) == 0 ? at.rm_so : -1;
        regfree(&regex);
        ptrdiff_t have = find(pattern, ignore_case, line);
        if (have != want)
            fail_msg("%s in \"%s\": %td, not %td", pattern, line, have, want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_it_finds),
        cmocka_unit_test(what_it_finds_at_the_edges),
        cmocka_unit_test(what_is_no_expression),
        cmocka_unit_test(classes_are_those_of_c),
        cmocka_unit_test(nul_is_a_character),
        cmocka_unit_test(parentheses_have_a_depth),
        cmocka_unit_test(bounds),
        cmocka_unit_test(where_it_ends),
        cmocka_unit_test(as_the_machine_has_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
