#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "params.h"

struct inner {
    struct text command;
    struct texts env;
};
static const struct param inner_params[] = {
    {.key = "command", .type = PARAM_NAME, .offset = offsetof(struct inner, command), .required = true},
    {.key = "env", .type = PARAM_ENV, .offset = offsetof(struct inner, env)},
};
static const struct params_table inner_table = PARAMS_TABLE(inner_params);

struct sized {
    bool on;
    long long rows;
};
static const struct param sized_params[] = {
    {.key = "rows", .type = PARAM_INT, .offset = offsetof(struct sized, rows), .min = 1, .max = 9},
};
static const struct params_table sized_table = PARAMS_TABLE(sized_params);

struct kept {
    bool on;
    struct text path;
};
static const struct param kept_params[] = {
    {.key = "path", .type = PARAM_NAME, .offset = offsetof(struct kept, path)},
};
static const struct params_table kept_table = PARAMS_TABLE(kept_params);

struct all {
    struct text text, name;
    long long count, free_count;
    double wait;
    bool flag;
    struct ints range;
    struct texts argv, env;
    struct inner inner;
    struct sized sized;
    struct kept kept;
    struct span raw;
};
static const struct param all_params[] = {
    {.key = "name", .type = PARAM_NAME, .offset = offsetof(struct all, name), .required = true},
    {.key = "text", .type = PARAM_TEXT, .offset = offsetof(struct all, text)},
    {.key = "count", .type = PARAM_INT, .offset = offsetof(struct all, count), .min = 0, .max = 10},
    {.key = "free_count", .type = PARAM_INT, .offset = offsetof(struct all, free_count)},
    {.key = "wait", .type = PARAM_NUMBER, .offset = offsetof(struct all, wait), .min = 0, .max = PARAM_MAX},
    {.key = "flag", .type = PARAM_BOOL, .offset = offsetof(struct all, flag)},
    {.key = "range", .type = PARAM_INTS, .offset = offsetof(struct all, range)},
    {.key = "argv", .type = PARAM_NAMES, .offset = offsetof(struct all, argv)},
    {.key = "env", .type = PARAM_ENV, .offset = offsetof(struct all, env)},
    {.key = "inner", .type = PARAM_OBJECT, .offset = offsetof(struct all, inner), .table = &inner_table},
    {.key = "sized", .type = PARAM_SWITCH, .offset = offsetof(struct all, sized), .table = &sized_table},
    {.key = "kept", .type = PARAM_SWITCH, .offset = offsetof(struct all, kept), .table = &kept_table},
    {.key = "raw", .type = PARAM_RAW, .offset = offsetof(struct all, raw)},
};
static const struct params_table all_table = PARAMS_TABLE(all_params);

static struct span span_str(const char *s)
{
    return (struct span){s, s ? strlen(s) : 0};
}

static int unpack(const char *text, struct all *a, struct err *err)
{
    *a = (struct all){.count = 7, .wait = 0.5, .flag = true};
    return params_unpack(&all_table, span_str(text), a, err);
}

static void switches(void **state)
{
    static const struct {
        const char *text;
        bool sized;
        long long rows;
        const char *path;
    } cases[] = {{"true", true, 4, NULL},
                 {"false", false, 4, NULL},
                 {"null", false, 4, NULL},
                 {"{}", true, 4, NULL},
                 {"{\"rows\":5}", true, 5, NULL}};
    struct err err;
    struct all a;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[100];
        snprintf(text, sizeof text, "{\"name\":\"n\",\"sized\":%s}", cases[i].text);
        a = (struct all){.sized = {.rows = 4}};
        assert_int_equal(params_unpack(&all_table, span_str(text), &a, &err), 0);
        assert_int_equal(a.sized.on, cases[i].sized);
        assert_int_equal(a.sized.rows, cases[i].rows);
        params_release(&all_table, &a);
    }
    assert_int_equal(unpack("{\"name\":\"n\",\"kept\":\"/tmp/x\"}", &a, &err), 0);
    assert_true(a.kept.on);
    assert_string_equal(a.kept.path.s, "/tmp/x");
    params_release(&all_table, &a);
    assert_int_equal(unpack("{\"name\":\"n\",\"kept\":{\"path\":\"y\"}}", &a, &err), 0);
    assert_string_equal(a.kept.path.s, "y");
    params_release(&all_table, &a);
}

static void fills_a_struct(void **state)
{
    (void)state;
    struct all a;
    struct err err;
    assert_int_equal(
        unpack(
            "{\"name\":\"n\\u00e9\",\"text\":\"a\\u0000b\",\"count\":10,\"free_count\":-9223372036854775808,"
            "\"wait\":2,\"flag\":false,\"range\":[1,-1],\"argv\":[\"a\",\"\"],\"env\":{\"A\":\"1=2\",\"B\":"
            "\"\"},"
            "\"inner\":{\"command\":\"ls\",\"env\":{\"P\":\"q\"}}, \"raw\": { \"x\" : 9007199254740993 } }",
            &a, &err),
        0);
    assert_string_equal(a.name.s, "n\xC3\xA9");
    assert_int_equal(a.text.n, 3);
    assert_memory_equal(a.text.s, "a\0b", 4);
    assert_int_equal(a.count, 10);
    assert_true(a.free_count == INT64_MIN);
    assert_true(a.wait == 2.0);
    assert_false(a.flag);
    assert_true(a.range.set);
    assert_int_equal(a.range.n, 2);
    assert_int_equal(a.range.list[1], -1);
    assert_int_equal(a.argv.n, 2);
    assert_string_equal(a.argv.list[0], "a");
    assert_string_equal(a.argv.list[1], "");
    assert_null(a.argv.list[2]);
    assert_int_equal(a.env.n, 2);
    assert_string_equal(a.env.list[0], "A=1=2");
    assert_string_equal(a.env.list[1], "B=");
    assert_null(a.env.list[2]);
    assert_string_equal(a.inner.command.s, "ls");
    assert_string_equal(a.inner.env.list[0], "P=q");
    assert_true(span_is(a.raw, "{ \"x\" : 9007199254740993 }"));
    params_release(&all_table, &a);
    assert_null(a.name.s);
    assert_null(a.inner.env.list);
}

static void leaves_defaults(void **state)
{
    (void)state;
    struct all a;
    assert_int_equal(
        unpack("{\"name\":\"\",\"text\":null,\"count\":null,\"wait\":null,\"flag\":null,\"range\":null,"
               "\"argv\":null,\"env\":null,\"inner\":null,\"raw\":null}",
               &a, NULL),
        0);
    assert_non_null(a.name.s);
    assert_int_equal(a.name.n, 0);
    assert_null(a.text.s);
    assert_int_equal(a.count, 7);
    assert_true(a.wait == 0.5);
    assert_true(a.flag);
    assert_false(a.range.set);
    assert_null(a.argv.list);
    assert_null(a.env.list);
    assert_null(a.raw.s);
    params_release(&all_table, &a);
    assert_int_equal(unpack("{\"name\":\"\",\"range\":[],\"argv\":[],\"env\":{}}", &a, NULL), 0);
    assert_true(a.range.set);
    assert_non_null(a.argv.list);
    assert_null(a.argv.list[0]);
    assert_non_null(a.env.list);
    params_release(&all_table, &a);
}

static void absent_is_empty(void **state)
{
    (void)state;
    static const struct param optional[] = {{.key = "flag", .type = PARAM_BOOL, .offset = 0}};
    static const struct params_table table = PARAMS_TABLE(optional), none = {NULL, 0, false};
    bool flag = true;
    struct err err;
    assert_int_equal(params_unpack(&table, (struct span){NULL, 0}, &flag, &err), 0);
    assert_int_equal(params_unpack(&table, span_str("null"), &flag, &err), 0);
    assert_int_equal(params_unpack(&table, span_str(" { } "), &flag, &err), 0);
    assert_true(flag);
    assert_int_equal(params_unpack(&none, (struct span){NULL, 0}, NULL, &err), 0);
    assert_int_equal(params_unpack(&none, span_str("{\"x\":1}"), NULL, &err), -1);
    assert_int_equal(params_unpack(&table, span_str("[]"), &flag, &err), -1);
    assert_int_equal(err.code, ERR_PARAMS);
    struct all a;
    assert_int_equal(unpack(NULL, &a, &err), -1);
    assert_string_equal(err.msg, "Invalid parameters: name: is missing");
}

/* What is wrong, each in an object that has a good name first and last a text, so that something has to be
 * freed. */
static const struct {
    const char *member;
    const char *message;
} faults[] = {
    {"\"text\":5", "text: must be a string"},
    {"\"text\":true", "text: must be a string"},
    {"\"text\":[\"a\"]", "text: must be a string"},
    {"\"name\":\"x\"", "name: is given twice"},
    {"\"n\\u0061me\":\"x\"", "name: is given twice"},
    {"\"flag\":null,\"flag\":true", "flag: is given twice"},
    {"\"count\":\"5\"", "count: must be an integer"},
    {"\"count\":1.5", "count: must be an integer"},
    {"\"count\":1.0", "count: must be an integer"},
    {"\"count\":1e1", "count: must be an integer"},
    {"\"count\":true", "count: must be an integer"},
    {"\"count\":[1]", "count: must be an integer"},
    {"\"count\":-1", "count: must be between 0 and 10"},
    {"\"count\":11", "count: must be between 0 and 10"},
    {"\"free_count\":9223372036854775808", "free_count: is out of range"},
    {"\"free_count\":1e309", "free_count: must be an integer"},
    {"\"wait\":\"1\"", "wait: must be a number"},
    {"\"wait\":false", "wait: must be a number"},
    {"\"wait\":1e309", "wait: is out of range"},
    {"\"wait\":-0.001", "wait: must be at least 0"},
    {"\"flag\":1", "flag: must be true or false"},
    {"\"flag\":\"true\"", "flag: must be true or false"},
    {"\"range\":1", "range: must be an array of integers"},
    {"\"range\":[1,\"2\"]", "range[1]: must be an integer"},
    {"\"range\":[1.0,2]", "range[0]: must be an integer"},
    {"\"range\":[null]", "range[0]: must be an integer"},
    {"\"argv\":\"ls\"", "argv: must be an array of strings"},
    {"\"argv\":{}", "argv: must be an array of strings"},
    {"\"argv\":[\"a\",5]", "argv[1]: must be a string"},
    {"\"argv\":[\"a\",[\"b\"]]", "argv[1]: must be a string"},
    {"\"argv\":[\"a\\u0000\"]", "argv[0]: must not contain a NUL character"},
    {"\"argv\":[\"a\",\"\\udc80\"]", "argv[1]: has half of a surrogate pair, which is no character"},
    {"\"text\":\"a\\ud83dX\"", "text: has half of a surrogate pair, which is no character"},
    {"\"env\":{\"A\":\"\\ude00\\ud83d\"}", "env.A: has half of a surrogate pair, which is no character"},
    {"\"env\":{\"\\ud83d\":\"a\"}", "env.\xEF\xBF\xBD: has half of a surrogate pair, which is no character"},
    {"\"env\":[]", "env: must be an object of strings"},
    {"\"env\":{\"A\":1}", "env.A: must be a string"},
    {"\"env\":{\"A\":null}", "env.A: must be a string"},
    {"\"env\":{\"A\":\"a\\u0000\"}", "env.A: must not contain a NUL character"},
    {"\"env\":{\"\":\"a\"}", "env: a variable's name must not be empty"},
    {"\"env\":{\"A=B\":\"a\"}", "env.A=B: a variable's name must not contain '=' or a NUL character"},
    {"\"env\":{\"A\\u0000B\":\"a\"}", "env.A: a variable's name must not contain '=' or a NUL character"},
    {"\"env\":{\"A\":\"1\",\"AB\":\"2\",\"A\":\"3\"}", "env.A: is given twice"},
    {"\"sized\":\"x\"", "sized: must be true, false or an object"},
    {"\"sized\":1", "sized: must be true, false or an object"},
    {"\"sized\":{\"rows\":10}", "sized.rows: must be between 1 and 9"},
    {"\"kept\":{\"path\":1}", "kept.path: must be a string"},
    {"\"sized\":0", "sized: must be true, false or an object"},
    {"\"inner\":[]", "inner: must be an object"},
    {"\"inner\":{}", "inner.command: is missing"},
    {"\"inner\":{\"command\":5}", "inner.command: must be a string"},
    {"\"inner\":{\"command\":null}", "inner.command: must be a string"},
    {"\"inner\":{\"command\":\"a\",\"env\":{\"P\":1}}", "inner.env.P: must be a string"},
    {"\"inner\":{\"command\":\"a\",\"more\":1}", "inner.more: is no parameter of this method"},
    {"\"raw\":\"{}\"", "raw: must be an object"},
    {"\"raw\":[]", "raw: must be an object"},
    {"\"other\":1", "other: is no parameter of this method"},
    {"\"Name\":\"x\"", "Name: is no parameter of this method"},
    {"\"o\\\"ther\":null", "o\"ther: is no parameter of this method"},
};

static void names_the_fault(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        char text[512], expected[256];
        struct all a;
        struct err err = {0, ""};
        snprintf(text, sizeof text, "{\"name\":\"n\",\"text\":\"t\",%s}", faults[i].member);
        if (strncmp(faults[i].member, "\"text\"", 6) == 0)
            snprintf(text, sizeof text, "{\"name\":\"n\",%s}", faults[i].member);
        snprintf(expected, sizeof expected, "Invalid parameters: %s", faults[i].message);
        assert_int_equal(json_check(span_str(text), NULL), 0);
        if (unpack(text, &a, &err) == 0)
            fail_msg("accepted: %s", text);
        assert_int_equal(err.code, ERR_PARAMS);
        assert_string_equal(err.msg, expected);
        /* Nothing is left, and what could not be filled has its default. */
        assert_null(a.name.s);
        assert_null(a.text.s);
        assert_int_equal(a.count, 7);
        params_release(&all_table, &a);
    }
}

static void required_null_is_refused(void **state)
{
    (void)state;
    struct all a;
    struct err err;
    assert_int_equal(unpack("{\"name\":null}", &a, &err), -1);
    assert_string_equal(err.msg, "Invalid parameters: name: must be a string");
    assert_int_equal(unpack("{\"name\":\"a\\u0000\"}", &a, &err), -1);
    assert_string_equal(err.msg, "Invalid parameters: name: must not contain a NUL character");
}

static void can_ignore_unknown_keys(void **state)
{
    (void)state;
    struct params_table table = all_table;
    table.ignore_unknown = true;
    struct all a = {.count = 7};
    assert_int_equal(params_unpack(&table, span_str("{\"x\":{\"y\":[]},\"name\":\"n\",\"x\":1}"), &a, NULL),
                     0);
    assert_string_equal(a.name.s, "n");
    params_release(&table, &a);
    assert_int_equal(params_unpack(&table, span_str("{\"name\":\"n\",\"name\":\"m\"}"), &a, NULL), -1);
}

static void long_keys_are_cut(void **state)
{
    (void)state;
    struct buf b BUF_AUTO = BUF_INIT;
    struct all a;
    struct err err;
    buf_adds(&b, "{\"name\":\"n\",\"x");
    for (int i = 0; i < 100000; i++)
        buf_adds(&b, "\xC3\xA9");
    buf_adds(&b, "\":1}");
    assert_int_equal(unpack(b.data, &a, &err), -1);
    assert_true(strlen(err.msg) < 400);
    assert_non_null(strstr(err.msg, "\xC3\xA9: is no parameter of this method"));
}

static void refuses_huge_lists(void **state)
{
    (void)state;
    struct buf b BUF_AUTO = BUF_INIT;
    struct all a;
    struct err err;
    buf_adds(&b, "{\"name\":\"n\",\"range\":[0");
    for (int i = 0; i < JSON_NODES_MAX; i++)
        buf_adds(&b, ",0");
    buf_adds(&b, "]}");
    assert_int_equal(unpack(b.data, &a, &err), -1);
    assert_string_equal(err.msg, "Invalid parameters: range: has too many values in it");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fills_a_struct),          cmocka_unit_test(switches),
        cmocka_unit_test(leaves_defaults),         cmocka_unit_test(absent_is_empty),
        cmocka_unit_test(names_the_fault),         cmocka_unit_test(required_null_is_refused),
        cmocka_unit_test(can_ignore_unknown_keys), cmocka_unit_test(long_keys_are_cut),
        cmocka_unit_test(refuses_huge_lists),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
