#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <cJSON.h>

#include "json.h"
#include "mem.h"

#define SPAN(literal) ((struct span){(literal), sizeof(literal) - 1})

static struct span span_str(const char *s)
{
    return (struct span){s, strlen(s)};
}

static void assert_buf(const struct buf *b, const char *expected, size_t n)
{
    assert_int_equal(b->len, n);
    assert_memory_equal(buf_str(b), expected, n);
}

/* ---- the checker ---- */

static const char *const good[] = {
    "null",
    "true",
    "false",
    "0",
    "-0",
    "1",
    "-1",
    "10",
    "0.5",
    "-0.5e10",
    "1e3",
    "1E+3",
    "1e-3",
    "123456789012345678901234567890",
    "\"\"",
    "\"a\"",
    "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"",
    "\"\\u0000\\uD83D\\uDE00\\ud83d\\uFfFf\"",
    "\"\x7f\"",
    "\"\xC3\xA9\xF0\x9F\x98\x80\"",
    "[]",
    "[ ]",
    "{}",
    "{ }",
    "[1]",
    "[1,2]",
    "[[],{}]",
    "{\"a\":1}",
    " {\r\n\t\"a\" : [ 1 , { } ] , \"b\":\"}\" } ",
    "{\"a\":1,\"a\":2}",
    "[[[[[[[[[[1]]]]]]]]]]",
    "[\"]\"]",
    "\"\xF4\x8F\xBF\xBF\"",
};

static const char *const bad[] = {
    "",
    " ",
    "nul",
    "nulll",
    "True",
    "NaN",
    "Infinity",
    "-",
    "+1",
    "01",
    "-01",
    "1.",
    ".5",
    "1.e3",
    "1e",
    "1e+",
    "0x10",
    "1 2",
    "--1",
    "\"",
    "\"a",
    "\"\\",
    "\"\\x\"",
    "\"\\u12\"",
    "\"\\u123g\"",
    "\"\\u123",
    "'a'",
    "\"\t\"",
    "\"\n\"",
    "a",
    "[",
    "[1",
    "[1,",
    "[1,]",
    "[,1]",
    "[1 2]",
    "]",
    "[]]",
    "[}",
    "{",
    "{]",
    "{\"a\"",
    "{\"a\":",
    "{\"a\":1",
    "{\"a\":1,",
    "{\"a\":1,}",
    "{a:1}",
    "{1:1}",
    "{\"a\" 1}",
    "{\"a\":1 \"b\":2}",
    "{,}",
    "{\"a\"}",
    "{\"a\":}",
    "{}x",
    "[] []",
    "// comment\n1",
    "[1]//",
    "\xEF\xBB\xBF{}",
    "\x00",
    "\f1",
    "\v1",
    "\xC2\xA0[]",
    "\"\xFF\"",
    "\"\xC0\x80\"",
    "\"\xED\xA0\x80\"",
    "\"\xC3\"",
    "\"\xE2\x82\"",
    "\"\xF8\x88\x80\x80\x80\"",
    "\"\xF4\x90\x80\x80\"",
    "\xFF\xFE{\0}\0",
    "[1,\x00]",
};

static void accepts_json(void **state)
{
    (void)state;
    struct err err;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        if (json_check(span_str(good[i]), &err) < 0)
            fail_msg("refused: %s (%s)", good[i], err.msg);
}

static void refuses_everything_else(void **state)
{
    (void)state;
    struct err err;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (json_check(span_str(bad[i]), &err) == 0)
            fail_msg("accepted: %s", bad[i]);
        assert_int_equal(err.code, ERR_PARSE);
    }
    assert_int_equal(json_check(SPAN("1\0"), &err), -1);
    assert_int_equal(json_check(SPAN("\"a\0b\""), &err), -1);
    assert_int_equal(json_check(SPAN("[1,\0]"), &err), -1);
    assert_int_equal(json_check(SPAN("{\0\"\0a\0\"\0:\0001\0}\0"), &err), -1);
    assert_int_equal(json_check((struct span){NULL, 0}, &err), -1);
}

/* Each cut of a valid object is invalid, and no byte behind the end is looked at (sanitizers see to that). */
static void refuses_every_prefix(void **state)
{
    (void)state;
    static const char text[] = "{\"a\":[1.5e3,\"\\u00e9\xC3\xA9\",true,null,{}],\"b\":\"x\"}";
    for (size_t n = 0; n < sizeof text - 1; n++) {
        char *copy = mem_alloc(n);
        memcpy(copy, text, n);
        assert_int_equal(json_check((struct span){copy, n}, NULL), -1);
        assert_true(json_is_cut((struct span){copy, n}));
        free(copy);
    }
    assert_int_equal(json_check(SPAN(text), NULL), 0);
    assert_false(json_is_cut(SPAN(text)));
    assert_false(json_is_cut(SPAN("[1,\"\xff")));
    assert_false(json_is_cut(SPAN("{}{")));
    assert_false(json_is_cut(SPAN("[tr]")));
}

static void says_where(void **state)
{
    (void)state;
    struct err err;
    assert_int_equal(json_check(SPAN("{\"a\":01}"), &err), -1);
    assert_string_equal(err.msg, "Not valid JSON: a number starts with 0 at byte 6");
    assert_int_equal(json_check(SPAN("{\"a\":1}x"), &err), -1);
    assert_string_equal(err.msg, "Not valid JSON: more text behind the value at byte 7");
    assert_int_equal(json_check(SPAN("[1,"), &err), -1);
    assert_string_equal(err.msg, "Not valid JSON: unexpected end at byte 3");
}

static void nested(struct buf *b, size_t depth, char open, char close)
{
    buf_truncate(b, 0);
    for (size_t i = 0; i < depth; i++)
        buf_adds(b, open == '[' ? "[" : "{\"k\":");
    buf_addc(b, '1');
    for (size_t i = 0; i < depth; i++)
        buf_addc(b, close);
}

static void bounds_the_depth(void **state)
{
    (void)state;
    struct buf b BUF_AUTO = BUF_INIT;
    for (int object = 0; object < 2; object++) {
        char open = object ? '{' : '[', close = object ? '}' : ']';
        nested(&b, JSON_DEPTH_MAX, open, close);
        assert_int_equal(json_check(span_of(&b), NULL), 0);
        cJSON *node = json_parse(span_of(&b));
        assert_non_null(node);
        cJSON_Delete(node);
        nested(&b, JSON_DEPTH_MAX + 1, open, close);
        assert_int_equal(json_check(span_of(&b), NULL), -1);
    }
    nested(&b, 5000000, '[', ']');
    assert_int_equal(json_check(span_of(&b), NULL), -1);
    /* The kind of bracket is remembered at every depth. */
    nested(&b, JSON_DEPTH_MAX, '[', ']');
    b.data[b.len - 1] = '}';
    assert_int_equal(json_check(span_of(&b), NULL), -1);
}

/* ---- walking ---- */

static void finds_members(void **state)
{
    (void)state;
    struct span object =
        SPAN("{ \"a\" : { \"b\":1 } , \"b\" : [2, \"]}\"] ,\"\\u0063\":\"x\\\"y\" ,\"A\":null,\"a\" :3}");
    struct span value;
    int count;
    assert_true(json_member(object, "a", &value, &count));
    assert_true(span_is(value, "3"));
    assert_int_equal(count, 2);
    assert_true(json_member(object, "b", &value, NULL));
    assert_true(span_is(value, "[2, \"]}\"]"));
    assert_true(json_member(object, "c", &value, &count));
    assert_true(span_is(value, "\"x\\\"y\""));
    assert_int_equal(count, 1);
    assert_true(json_member(object, "A", &value, NULL));
    assert_int_equal(json_kind(value), JSON_NULL);
    assert_false(json_member(object, "B", &value, &count));
    assert_int_equal(count, 0);
    assert_false(json_member(SPAN("{}"), "a", &value, NULL));
    assert_false(json_member(SPAN(" { } "), "a", &value, NULL));
    assert_true(json_member(SPAN("{\"\":0}"), "", &value, NULL));
}

static void walks_elements(void **state)
{
    (void)state;
    static const char *const expected[] = {"1", "\"a,]\"", "[2,[3]]", "{\"x\":[]}", "null", "-1e5"};
    struct span array = SPAN(" [1 ,\"a,]\", [2,[3]] ,{\"x\":[]},null , -1e5 ]");
    struct span value;
    size_t n = 0;
    for (size_t at = 0; json_element(array, &at, &value); n++)
        assert_true(span_is(value, expected[n]));
    assert_int_equal(n, 6);
    size_t at = 0;
    assert_false(json_element(SPAN("[ ]"), &at, &value));
}

/* Every value in every place, with and without spaces, in memory that ends where the text does. */
static void walks_whatever_is_between_commas(void **state)
{
    (void)state;
    static const char *const values[] = {"1",    "\"]\"",   "\"\\\\\"",       "[]",
                                         "[ ]",  "{}",      "{\"a\":[1,{}]}", "[[],[[2]]]",
                                         "true", "-1.5e+3", "\"{\\\"\""};
    static const char *const spaces[] = {"", " ", "\t\r\n "};
    enum { N = sizeof values / sizeof *values };
    for (size_t i = 0; i < (size_t)N * N * 3; i++) {
        const char *a = values[i % N], *b = values[i / N % N], *_ = spaces[i / N / N];
        char array[100], object[120];
        struct span key, value;
        snprintf(array, sizeof array, "%s[%s%s%s,%s%s%s]", _, _, a, _, _, b, _);
        snprintf(object, sizeof object, "%s{%s\"k\\\"\"%s:%s%s%s,%s\"\":%s%s}", _, _, _, _, a, _, _, b, _);
        for (int kind = 0; kind < 2; kind++) {
            const char *text = kind == 0 ? array : object;
            size_t n = strlen(text), at = 0;
            char *exact = mem_dup(text, n);
            exact = mem_realloc(exact, n);
            struct span whole = {exact, n};
            assert_int_equal(json_check(whole, NULL), 0);
            for (int k = 0; k < 2; k++) {
                assert_true(kind == 0 ? json_element(whole, &at, &value)
                                      : json_next_member(whole, &at, &key, &value));
                assert_true(span_is(value, k == 0 ? a : b));
                assert_true(kind == 0 || span_is(key, k == 0 ? "\"k\\\"\"" : "\"\""));
            }
            assert_false(kind == 0 ? json_element(whole, &at, &value)
                                   : json_next_member(whole, &at, &key, &value));
            struct buf packed BUF_AUTO = BUF_INIT;
            json_compact(&packed, whole);
            for (const char *c = buf_str(&packed); *c; c++)
                assert_null(strchr(" \t\r\n", *c));
            assert_int_equal(json_check(span_of(&packed), NULL), 0);
            free(exact);
        }
    }
}

/* There is nothing in nothing, and no byte of it is looked at. */
static void nothing_has_no_elements(void **state)
{
    (void)state;
    size_t at = 0;
    char *byte = malloc(1);
    struct span key, value, nothing = {byte + 1, 0};
    assert_false(json_element(nothing, &at, &value));
    assert_false(json_next_member(nothing, &at, &key, &value));
    assert_int_equal(json_kind(nothing), JSON_NUMBER);
    free(byte);
}

static void steps_over_strings(void **state)
{
    (void)state;
    static const char *const strings[] = {"\"\"",         "\"\\\"\"",       "\"\\\\\"",  "\"\\\\\\\"\"",
                                          "\"\\\\\\\\\"", "\"a\\\"\\\"b\"", "\",\\\",\""};
    for (size_t i = 0; i < sizeof strings / sizeof *strings; i++) {
        char array[64];
        size_t at = 0;
        struct span value;
        snprintf(array, sizeof array, "[%s,%s]", strings[i], strings[i]);
        assert_int_equal(json_check(span_str(array), NULL), 0);
        assert_true(json_element(span_str(array), &at, &value) && span_is(value, strings[i]));
        assert_true(json_element(span_str(array), &at, &value) && span_is(value, strings[i]));
        assert_false(json_element(span_str(array), &at, &value));
    }
}

static void tells_kinds(void **state)
{
    (void)state;
    assert_int_equal(json_kind(SPAN(" null")), JSON_NULL);
    assert_int_equal(json_kind(SPAN("true")), JSON_BOOL);
    assert_int_equal(json_kind(SPAN("\nfalse")), JSON_BOOL);
    assert_int_equal(json_kind(SPAN("-1")), JSON_NUMBER);
    assert_int_equal(json_kind(SPAN("\"\"")), JSON_STRING);
    assert_int_equal(json_kind(SPAN("[]")), JSON_ARRAY);
    assert_int_equal(json_kind(SPAN("{}")), JSON_OBJECT);
}

/* ---- strings ---- */

struct string_case {
    struct span text;
    struct span decoded;
};
static const struct string_case strings[] = {
    {{"\"\"", 2}, {"", 0}},
    {{"\"a\\u0000b\"", 10}, {"a\0b", 3}},
    {{"\"\\u0000\"", 8}, {"\0", 1}},
    {{"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", 18}, {"\"\\/\b\f\n\r\t", 8}},
    {{"\"\\u00e9\\u20AC\"", 14}, {"\xC3\xA9\xE2\x82\xAC", 5}},
    {{"\"\\ud83d\\ude00\"", 14}, {"\xF0\x9F\x98\x80", 4}},
    {{"\"\\uD83D\\uDE00\"", 14}, {"\xF0\x9F\x98\x80", 4}},
    {{"\"\\ud83d\"", 8}, {"\xEF\xBF\xBD", 3}},
    {{"\"\\ude00\"", 8}, {"\xEF\xBF\xBD", 3}},
    {{"\"\\ud83dX\"", 9}, {"\xEF\xBF\xBDX", 4}},
    {{"\"\\ud83d\\n\"", 10}, {"\xEF\xBF\xBD\n", 4}},
    {{"\"\\ud83d\\u0041\"", 14},
     {"\xEF\xBF\xBD"
      "A",
      4}},
    {{"\"\\ud83d\\u0000\"", 14}, {"\xEF\xBF\xBD\0", 4}},
    {{"\"\\ud83d\\ud83d\\ude00\"", 20}, {"\xEF\xBF\xBD\xF0\x9F\x98\x80", 7}},
    {{"\"\\ude00\\ud83d\"", 14}, {"\xEF\xBF\xBD\xEF\xBF\xBD", 6}},
    {{"\"\\uDBFF\\uDFFF\"", 14}, {"\xF4\x8F\xBF\xBF", 4}},
    {{"\"\\ufffd\\uffff\"", 14}, {"\xEF\xBF\xBD\xEF\xBF\xBF", 6}},
    {{"\"\\\\u0000\"", 9}, {"\\u0000", 6}},
    {{"\"\xC3\xA9\"", 4}, {"\xC3\xA9", 2}},
    {{"\"12\"", 4}, {"12", 2}},
};

/* Our own decoder and the way through cJSON agree, and what is written comes back the same. */
static void decodes_strings(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof strings / sizeof *strings; i++) {
        const struct string_case *c = &strings[i];
        assert_int_equal(json_check(c->text, NULL), 0);
        struct buf b BUF_AUTO = BUF_INIT;
        assert_true(json_string_text(c->text, &b));
        assert_buf(&b, c->decoded.s, c->decoded.n);

        cJSON *node = json_parse(c->text);
        assert_non_null(node);
        assert_null(json_number(node));
        size_t n;
        char *s = json_take_string(node, &n);
        assert_int_equal(n, c->decoded.n);
        assert_memory_equal(s, c->decoded.s, n + 1);
        cJSON_Delete(node);

        struct buf written BUF_AUTO = BUF_INIT;
        json_put_string(&written, s, n);
        assert_int_equal(json_check(span_of(&written), NULL), 0);
        struct buf back BUF_AUTO = BUF_INIT;
        assert_true(json_string_text(span_of(&written), &back));
        assert_buf(&back, c->decoded.s, c->decoded.n);
        free(s);
    }
}

static void compares_strings(void **state)
{
    (void)state;
    assert_true(json_string_is(SPAN("\"method\""), "method"));
    assert_true(json_string_is(SPAN("\"m\\u0065thod\""), "method"));
    assert_false(json_string_is(SPAN("\"method\\u0000\""), "method"));
    assert_false(json_string_is(SPAN("\"Method\""), "method"));
    assert_false(json_string_is(SPAN("\"metho\""), "method"));
    assert_false(json_string_is(SPAN("5"), "5"));
    assert_true(json_string_is(SPAN("\"\""), ""));
    assert_false(json_string_is((struct span){NULL, 0}, ""));
}

static void writes_strings(void **state)
{
    (void)state;
    struct buf b BUF_AUTO = BUF_INIT;
    static const char raw[] = "a\0\x01\x1f\x7f\"\\/\n\t\r\b\f\xE2\x80\xA8\xFFz\xC3";
    json_put_string(&b, raw, sizeof raw - 1);
    static const char expected[] =
        "\"a\\u0000\\u0001\\u001f\x7f\\\"\\\\/\\n\\t\\r\\b\\f\xE2\x80\xA8\xEF\xBF\xBDz\xEF\xBF\xBD\"";
    assert_buf(&b, expected, sizeof expected - 1);
    for (int i = 0; i < 256 * 20; i++) { /* every byte at every place */
        struct buf back BUF_AUTO = BUF_INIT;
        char text[20];
        memset(text, i & 1 ? '!' : '~', sizeof text);
        text[i / 256] = (char)(i % 256);
        buf_truncate(&b, 0);
        json_put_string(&b, text, sizeof text);
        assert_int_equal(json_check(span_of(&b), NULL), 0);
        if (i % 256 < 0x80 && json_string_text(span_of(&b), &back))
            assert_buf(&back, text, sizeof text);
    }
}

static void shows_json(void **state)
{
    (void)state;
    struct buf out BUF_AUTO = BUF_INIT;
    static const char text[] = "{\"a\":\r\n\t[\"\xc2\x9b\x7f\xc3\xbc\xc2\xa0\xc2\x80\",\"\\n\"]}\n";
    json_put_shown(&out, (struct span){text, sizeof text - 1});
    assert_string_equal(buf_str(&out), "{\"a\":   [\"\\u009b\\u007f\xc3\xbc\xc2\xa0\\u0080\",\"\\n\"]} ");
    assert_int_equal(json_check(span_of(&out), NULL), 0);
}

static void writes_objects(void **state)
{
    (void)state;
    struct buf b BUF_AUTO = BUF_INIT;
    buf_addc(&b, '{');
    json_member_string(&b, "a", "{");
    json_member_string(&b, "b", NULL);
    json_member_int(&b, "c", -9223372036854775807LL - 1);
    json_member_bool(&b, "d", true);
    json_key(&b, "e");
    buf_addc(&b, '{');
    json_member_text(&b, "f", "\0", 1);
    buf_addc(&b, '}');
    json_member_bool(&b, "g", false);
    buf_addc(&b, '}');
    assert_string_equal(buf_str(&b), "{\"a\":\"{\",\"b\":null,\"c\":-9223372036854775808,\"d\":true,"
                                     "\"e\":{\"f\":\"\\u0000\"},\"g\":false}");
    assert_int_equal(json_check(span_of(&b), NULL), 0);
}

static void writes_numbers_that_may_lack(void **state)
{
    (void)state;
    struct buf b BUF_AUTO = BUF_INIT;
    buf_addc(&b, '{');
    json_member_int_or_null(&b, "a", -1);
    json_member_int_or_null(&b, "b", 0);
    json_member_int_or_null(&b, "c", 7);
    json_member_seconds(&b, "d", 0);
    json_member_seconds(&b, "e", 12034);
    buf_addc(&b, '}');
    assert_string_equal(buf_str(&b), "{\"a\":null,\"b\":0,\"c\":7,\"d\":0.000,\"e\":12.034}");
}

static void compacts(void **state)
{
    (void)state;
    struct buf b BUF_AUTO = BUF_INIT;
    json_compact(&b, SPAN(" { \"a b\\\" \" : [ 1 ,\t2.50 , \"\\u0041 \\n\" ] ,\r\n \"c\" : null } "));
    assert_string_equal(buf_str(&b), "{\"a b\\\" \":[1,2.50,\"\\u0041 \\n\"],\"c\":null}");
}

/* ---- through cJSON ---- */

static void keeps_numbers_exact(void **state)
{
    (void)state;
    static const char *const numbers[] = {"0",
                                          "-0",
                                          "9007199254740993",
                                          "18446744073709551615",
                                          "1e3",
                                          "1.50",
                                          "1E400",
                                          "-1.0e-7",
                                          "123456789012345678901234567890.000000000000000000001"};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        cJSON *node = json_parse(span_str(numbers[i]));
        assert_string_equal(json_number(node), numbers[i]);
        size_t n;
        assert_null(json_take_string(node, &n));
        cJSON_Delete(node);
    }
    assert_null(json_number(NULL));
}

static void parses_trees(void **state)
{
    (void)state;
    cJSON *node =
        json_parse(SPAN(" {\"a\\u0000\":[1, \"-2\", true, null, {}], \"A\":-5, \"a\\u0000b\":\"\"} "));
    assert_true(cJSON_IsObject(node));
    assert_string_equal(json_number(cJSON_GetObjectItemCaseSensitive(node, "A")), "-5");
    size_t n;
    char *key = json_take_key(node->child, &n);
    assert_int_equal(n, 2);
    assert_memory_equal(key, "a\0", 3);
    free(key);
    cJSON *list = node->child->child;
    assert_string_equal(json_number(list), "1");
    assert_null(json_number(list->next));
    assert_true(cJSON_IsTrue(list->next->next));
    assert_true(cJSON_IsNull(list->next->next->next));
    assert_true(cJSON_IsObject(list->next->next->next->next));
    assert_null(json_take_key(list, &n));
    cJSON_Delete(node);
}

static void many(struct buf *b, size_t n)
{
    buf_truncate(b, 0);
    for (size_t i = 0; i < n; i++)
        buf_adds(b, i == 0 ? "[{\"a\":1}" : ",{\"a\":\"\"}");
    buf_addc(b, ']');
}

static void bounds_the_tree(void **state)
{
    (void)state;
    struct buf b BUF_AUTO = BUF_INIT;
    many(&b, (JSON_NODES_MAX - 1) / 2);
    cJSON *node = json_parse(span_of(&b));
    assert_non_null(node);
    cJSON_Delete(node);
    many(&b, (JSON_NODES_MAX - 1) / 2 + 1);
    assert_null(json_parse(span_of(&b)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accepts_json),
        cmocka_unit_test(refuses_everything_else),
        cmocka_unit_test(refuses_every_prefix),
        cmocka_unit_test(says_where),
        cmocka_unit_test(bounds_the_depth),
        cmocka_unit_test(finds_members),
        cmocka_unit_test(walks_elements),
        cmocka_unit_test(walks_whatever_is_between_commas),
        cmocka_unit_test(nothing_has_no_elements),
        cmocka_unit_test(steps_over_strings),
        cmocka_unit_test(tells_kinds),
        cmocka_unit_test(decodes_strings),
        cmocka_unit_test(compares_strings),
        cmocka_unit_test(writes_strings),
        cmocka_unit_test(shows_json),
        cmocka_unit_test(writes_objects),
        cmocka_unit_test(writes_numbers_that_may_lack),
        cmocka_unit_test(compacts),
        cmocka_unit_test(keeps_numbers_exact),
        cmocka_unit_test(parses_trees),
        cmocka_unit_test(bounds_the_tree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
