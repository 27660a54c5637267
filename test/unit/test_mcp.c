/* The layers of the bridge that touch no process: lines, messages, ids, notifications. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tools/mcp/mcp_lines.h"
#include "tools/mcp/mcp_message.h"
#include "tools/mcp/mcp_notes.h"
#include "mem.h"

static struct span span(const char *text)
{
    return (struct span){text, strlen(text)};
}

/* ---- lines ---- */

/* Feeds `n` bytes in pieces of `step`, and writes what comes out: "[line]", "<head|tail>". */
static void split(const char *data, size_t n, size_t step, size_t max, struct buf *out)
{
    struct mcp_lines *l = mem_zalloc(sizeof *l);
    struct span line;
    enum mcp_lines_state state;
    mcp_lines_init(l, max);
    for (size_t at = 0, end = 0; !end; at += step) {
        size_t room, take = at < n ? (n - at < step ? n - at : step) : 0;
        char *to = mcp_lines_room(l, &room);
        assert_true(take <= room);
        if (take > 0) {
            memcpy(to, data + at, take);
            mcp_lines_filled(l, take);
        } else {
            mcp_lines_finish(l);
            end = 1;
        }
        while ((state = mcp_lines_next(l, &line)) != MCP_LINES_NONE) {
            if (state == MCP_LINES_LINE) {
                struct buf own BUF_AUTO = BUF_INIT;
                mcp_lines_take(l, line, &own);
                assert_int_equal(own.len, MCP_LINES_GAP + line.n);
                buf_addf(out, "[%.*s]", (int)(own.len - MCP_LINES_GAP), own.data + MCP_LINES_GAP);
            } else {
                buf_addf(out, "<%.*s|%.*s>", (int)line.n, line.s, (int)l->tail.len, l->tail.data);
            }
        }
    }
    mcp_lines_release(l);
    free(l);
}

static void lines_come_whole_however_they_are_cut(void **state)
{
    (void)state;
    static const char text[] = "one\n\ntwo two\r\n\n12345678\n123456789\nlast";
    for (size_t step = 1; step < sizeof text; step++) {
        struct buf out BUF_AUTO = BUF_INIT;
        split(text, sizeof text - 1, step, 8, &out);
        assert_string_equal(out.data, "[one][][two two\r][][12345678]<123456789|123456789>[last]");
    }
}

static void a_line_that_is_too_long_leaves_its_ends(void **state)
{
    (void)state;
    size_t n = 300000;
    char *text = mem_alloc(n + 10);
    memset(text, 'x', n);
    static const char begin[] = {'h', 'e', 'a', 'd'}, rest[] = "tail\nnext\n";
    memcpy(text, begin, sizeof begin);
    memcpy(text + n - 4, rest, sizeof rest - 1);
    for (size_t step = 1000; step <= MCP_LINES_STEP; step *= 4) {
        struct buf out BUF_AUTO = BUF_INIT;
        split(text, n + 6, step, 100000, &out);
        assert_int_equal(out.len, 1 + MCP_LINES_HEAD + 1 + MCP_LINES_TAIL + 1 + 6);
        assert_memory_equal(out.data, "<headx", 6);
        assert_string_equal(out.data + out.len - 11, "tail>[next]");
    }
    free(text);
}

static void memory_of_a_long_line_goes_with_it(void **state)
{
    (void)state;
    struct mcp_lines *l = mem_zalloc(sizeof *l);
    struct span line;
    struct buf own BUF_AUTO = BUF_INIT;
    mcp_lines_init(l, BUF_NO_MAX / 4);
    for (int i = 0; i < 200; i++) {
        size_t room;
        char *to = mcp_lines_room(l, &room);
        memset(to, 'x', room);
        if (i == 199)
            to[room - 1] = '\n';
        mcp_lines_filled(l, room);
        if (i < 199)
            assert_int_equal(mcp_lines_next(l, &line), MCP_LINES_NONE);
    }
    assert_int_equal(mcp_lines_next(l, &line), MCP_LINES_LINE);
    assert_int_equal(line.n, 200 * MCP_LINES_STEP - 1);
    mcp_lines_take(l, line, &own);
    assert_ptr_equal(own.data + MCP_LINES_GAP, line.s); /* not copied */
    assert_int_equal(mcp_lines_next(l, &line), MCP_LINES_NONE);
    assert_null(l->held.data);
    free(l);
}

/* ---- messages ---- */

static void messages_are_told_apart(void **state)
{
    (void)state;
    static const struct {
        const char *line, *id, *method;
        enum mcp_kind kind;
    } cases[] = {
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":null}", "1", NULL, MCP_RESPONSE},
        {" { \"result\" : {\"id\":2,\"method\":\"x\"} , \"id\" : \"a\" , \"jsonrpc\" : \"2.0\" } \r", "\"a\"",
         NULL, MCP_RESPONSE},
        {"{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{}}", "null", NULL, MCP_RESPONSE},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"result\":1}", "1", "\"ping\"", MCP_REQUEST},
        {"{\"jsonrpc\":\"2.0\",\"method\":\"n\"}", NULL, "\"n\"", MCP_NOTIFICATION},
        {"{\"jsonrpc\":\"2.0\",\"\\u006dethod\":\"n\",\"i\\u0064\":[]}", "[]", "\"n\"", MCP_REQUEST},
        {"{\"jsonrpc\":\"2.0\",\"method\":7,\"id\":1,\"result\":1}", NULL, NULL, MCP_NOISE},
        {"{\"jsonrpc\":\"2.0\",\"id\":1}", NULL, NULL, MCP_NOISE},
        {"{\"jsonrpc\":2.0,\"id\":1,\"result\":1}", NULL, NULL, MCP_NOISE},
        {"{\"id\":1,\"result\":1}", NULL, NULL, MCP_NOISE},
        {"[{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":1}]", NULL, NULL, MCP_NOISE},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":NaN}", NULL, NULL, MCP_NOISE},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"\xff\"}", NULL, NULL, MCP_NOISE},
        {"", NULL, NULL, MCP_NOISE},
        {"{", NULL, NULL, MCP_NOISE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct mcp_message m;
        mcp_message_read(span(cases[i].line), &m);
        assert_int_equal(m.kind, cases[i].kind);
        if (m.kind == MCP_NOISE)
            continue;
        assert_true(cases[i].id ? span_is(m.id, cases[i].id) : !m.id.s);
        assert_true(cases[i].method ? span_is(m.method, cases[i].method) : !m.method.s);
    }
}

static bool same_id(const char *a, const char *b)
{
    struct buf one BUF_AUTO = BUF_INIT;
    struct buf other BUF_AUTO = BUF_INIT;
    bool is_id = mcp_id_key(span(a), &one), other_is = mcp_id_key(span(b), &other);
    return is_id && other_is && one.len == other.len && memcmp(buf_str(&one), buf_str(&other), one.len) == 0;
}

static void ids_are_compared_by_type_and_value(void **state)
{
    (void)state;
    static const char *const sets[][5] = {
        {"1", "1.0", "1e0", "10e-1", "0.1E1"},
        {"0", "-0", "0.00", "0e5", "-0.0e-7"},
        {"-12300", "-123e2", "-1.23e4"},
        {"9007199254740993", "9007199254740993.0"},
        {"9007199254740992"},
        {"\"1\"", "\"\\u0031\""},
        {"\"\""},
        {"\"\\u0000\""},
        {"\"a\\/\"", "\"a/\""},
        {"\"\\ud83d\\ude00\"", "\"\xF0\x9F\x98\x80\""},
        {"12300"},
        {"0.001", "1e-3"},
        {"1e99999999999999999999"},
        {"1e-99999999999999999999"},
        {"1e400", "10e399"},
        {"123", "1.23e2"},
        {"\"0e\""},
        {"\"-12300\""},
    };
    size_t n = sizeof sets / sizeof *sets;
    for (size_t i = 0; i < n * 5; i++)
        for (size_t j = 0; j < n * 5; j++) {
            const char *a = sets[i / 5][i % 5], *b = sets[j / 5][j % 5];
            if (a && b)
                assert_int_equal(same_id(a, b), i / 5 == j / 5);
        }
    static const char *const none[] = {"null", "true", "[1]", "{}"};
    for (size_t i = 0; i < 4; i++)
        assert_false(same_id(none[i], none[i]));
}

static void what_a_client_sends_is_checked(void **state)
{
    (void)state;
    static const struct {
        const char *text, *wrong; /* NULL: fine */
        enum mcp_kind kind;
    } cases[] = {
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"}", NULL, MCP_REQUEST},
        {"{\"jsonrpc\":\"2.0\",\"method\":\"m\"}", NULL, MCP_NOTIFICATION},
        {"{\"jsonrpc\":\"2.0\",\"method\":\"m\"}", "x.id: must be", MCP_REQUEST},
        {"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"m\"}", "x.id: must be", MCP_REQUEST},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":1,\"method\":\"m\"}", "x.id: must be", MCP_REQUEST},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"}", "x.id: a notification", MCP_NOTIFICATION},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":null}", "x.method: must be", MCP_REQUEST},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"method\":\"n\"}", "x.method: must be",
         MCP_REQUEST},
        {"{\"id\":1,\"method\":\"m\"}", "x.jsonrpc: must be", MCP_REQUEST},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct mcp_message m;
        struct err err;
        int result = mcp_message_check(span(cases[i].text), cases[i].kind, "x", &m, &err);
        assert_int_equal(result, cases[i].wrong ? -1 : 0);
        if (!cases[i].wrong)
            continue;
        assert_int_equal(err.code, ERR_PARAMS);
        assert_non_null(strstr(err.msg, cases[i].wrong));
    }
}

static void the_id_of_a_cut_answer_is_found(void **state)
{
    (void)state;
    static const struct {
        const char *head, *tail, *id;
    } cases[] = {
        {"{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"x\":\"yyy", "yyy\"}}", "7"},
        {"{\"result\":{\"id\":1,\"x\":\"yyy", "yyy\"},\"jsonrpc\":\"2.0\",\"id\":\"a b\"}", "\"a b\""},
        {"{\"result\":{\"x\":\"yyy", "yyy\", \"id\" : 5} , \"id\" : 8 , \"more\":[] } ", "8"},
        {"{\"result\":{\"x\":\"yyy", "yyy\",\"id\":5}}", NULL},
        {"{\"result\":\"yyy", "\\\"id\\\":5}\"}", NULL},
        {"{\"jsonrpc\":\"2.0\",\"method\":\"n\",\"params\":\"yy", "y\",\"id\":5}", NULL},
        {"{\"jsonrpc\":\"2.0\",\"id\":70", "70,\"result\":1}", NULL},
        {"{\"jsonrpc\":\"2.0\",\"id\":{\"id\":1},\"result\":\"", "\"}", NULL},
        {"noise \"id\":5,", "\"id\":5}", NULL},
        {"{", "}", NULL},
        {"", "", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct span id = mcp_id_of_parts(span(cases[i].head), span(cases[i].tail));
        assert_true(cases[i].id ? span_is(id, cases[i].id) : !id.s);
    }
}

static void a_broken_answer_is_told_from_noise(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        bool broken;
        const char *id;
    } cases[] = {
        {"{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":NaN}", true, "7"},
        {"{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"result\":{\"x\":\"cut", true, "\"a\""},
        {"{\"jsonrpc\":\"2.0\",\"result\":\"\xff\",\"id\":7}", true, "7"},
        {"{\"jsonrpc\":\"2.0\",\"res", true, NULL},
        {"{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":1}", false, NULL}, /* whole */
        {"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":NaN}", false, NULL},
        {"{\"id\":7,\"result\":NaN}", false, NULL},
        {"[debug] {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":NaN}", false, NULL},
        {"{'jsonrpc': '2.0', 'id': 7}", false, NULL},
        {"", false, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct span id = {NULL, 0};
        assert_int_equal(mcp_is_broken_response(span(cases[i].line), &id), cases[i].broken);
        assert_true(cases[i].id ? span_is(id, cases[i].id) : !id.s);
    }
}

/* ---- notifications ---- */

static void notifications_are_kept_until_they_have_arrived(void **state)
{
    (void)state;
    struct mcp_notes notes = {0};
    struct buf out BUF_AUTO = BUF_INIT;
    for (int i = 0; i < MCP_NOTES_MAX + 3; i++)
        mcp_notes_add(&notes, span(i < MCP_NOTES_MAX ? "1" : "2"));
    buf_addc(&out, '{');
    unsigned long long number = mcp_notes_put(&notes, "notifications", 2, &out);
    assert_string_equal(out.data, "{\"notifications\":[1,1],\"dropped\":3,\"remaining\":2046");
    mcp_notes_add(&notes, span("3")); /* the oldest goes, which was given */
    mcp_notes_forget(&notes, number, 3);
    assert_int_equal(notes.n, MCP_NOTES_MAX - 1);
    assert_int_equal(notes.dropped, 1);
    mcp_notes_forget(&notes, number, 0); /* twice does no harm */
    assert_int_equal(notes.n, MCP_NOTES_MAX - 1);
    buf_truncate(&out, 1);
    mcp_notes_forget(&notes, mcp_notes_put(&notes, "notifications", 1000000, &out), 1);
    assert_int_equal(notes.n, 0);
    assert_int_equal(notes.bytes, 0);
    assert_null(notes.last);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_come_whole_however_they_are_cut),
        cmocka_unit_test(a_line_that_is_too_long_leaves_its_ends),
        cmocka_unit_test(memory_of_a_long_line_goes_with_it),
        cmocka_unit_test(messages_are_told_apart),
        cmocka_unit_test(ids_are_compared_by_type_and_value),
        cmocka_unit_test(what_a_client_sends_is_checked),
        cmocka_unit_test(the_id_of_a_cut_answer_is_found),
        cmocka_unit_test(a_broken_answer_is_told_from_noise),
        cmocka_unit_test(notifications_are_kept_until_they_have_arrived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
