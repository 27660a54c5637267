#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rpc.h"

static struct span span_str(const char *s)
{
    return (struct span){s, strlen(s)};
}

/* What the methods below saw and hold. */
static struct {
    struct rpc_call *held[8];
    int n_held;
    int abandoned;
    char delivered[8]; /* a letter for each hook: 'y' or 'n' */
    int n_delivered;
    int runs;
} seen;

static void on_abandon(void *arg)
{
    assert_ptr_equal(arg, &seen);
    seen.abandoned++;
}

static void on_delivered(void *arg, bool delivered)
{
    assert_ptr_equal(arg, &seen);
    seen.delivered[seen.n_delivered++] = delivered ? 'y' : 'n';
}

static void echo(struct rpc_call *call, struct span params, void *ctx)
{
    (void)ctx;
    seen.runs++;
    rpc_result(call, params.s ? params : span_str("\"none\""));
}

static void twice(struct rpc_call *call, struct span params, void *ctx)
{
    echo(call, params, ctx);
    rpc_null(call);
}

static void refuse(struct rpc_call *call, struct span params, void *ctx)
{
    struct err err;
    (void)params;
    err_set(&err, ERR_TOOL, "no \"such\" thing: %s", (const char *)ctx);
    rpc_fail(call, &err);
}

static void hold(struct rpc_call *call, struct span params, void *ctx)
{
    (void)params, (void)ctx;
    seen.held[seen.n_held++] = call;
}

static void wait(struct rpc_call *call, struct span params, void *ctx)
{
    rpc_on_abandon(call, on_abandon, &seen);
    rpc_on_delivered(call, on_delivered, &seen);
    hold(call, params, ctx);
}

static void hooked(struct rpc_call *call, struct span params, void *ctx)
{
    rpc_on_delivered(call, on_delivered, &seen);
    echo(call, params, ctx);
}

static void text(struct rpc_call *call, struct span params, void *ctx)
{
    (void)params, (void)ctx;
    struct span request = rpc_request_text(call);
    rpc_result_string(call, request.s, request.n);
}

/* The result stands behind a gap as long as the first parameter's number. */
static void behind_gap(struct rpc_call *call, struct span params, void *ctx)
{
    (void)ctx;
    struct buf result BUF_AUTO = BUF_INIT;
    struct span gap = {"0", 1}, length = {"0", 1};
    assert_true(json_member(params, "gap", &gap, NULL) && json_member(params, "n", &length, NULL));
    size_t n = strtoul(gap.s, NULL, 10);
    for (size_t i = 0; i < n; i++)
        buf_addc(&result, '?');
    buf_addc(&result, '"');
    for (size_t i = strtoul(length.s, NULL, 10); i > 0; i--)
        buf_addc(&result, 'x');
    buf_addc(&result, '"');
    rpc_result_take(call, &result, n);
}

static void turn(struct rpc_call *call, struct span params, void *ctx)
{
    rpc_in_turn(call, params.s ? "one" : "another");
    wait(call, params, ctx);
}

static const struct rpc_method methods[] = {
    {.name = "echo", .run = echo},      {.name = "twice", .run = twice},
    {.name = "refuse", .run = refuse},  {.name = "hold", .run = hold},
    {.name = "wait", .run = wait},      {.name = "hooked", .run = hooked},
    {.name = "text", .run = text},      {.name = "turn", .run = turn},
    {.name = "gap", .run = behind_gap}, {0},
};

static rpc_handler find(void *ctx, const char *method, void **handler_ctx)
{
    *handler_ctx = ctx;
    return rpc_find(methods, method);
}

struct answer {
    int times;
    char *text;
};

static void take_answer(void *arg, struct buf *response)
{
    struct answer *a = arg;
    a->times++;
    free(a->text);
    a->text = buf_take(response, NULL);
}

static struct answer answer;

static struct rpc_message *take(const char *message)
{
    static char ctx[] = "ctx";
    return rpc_take(span_str(message), find, ctx, (struct rpc_sink){take_answer, &answer});
}

static int setup(void **state)
{
    (void)state;
    memset(&seen, 0, sizeof seen);
    answer = (struct answer){0, NULL};
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    free(answer.text);
    return 0;
}

/* ---- messages that are answered at once ---- */

#define OK(id, result) "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"result\":" result "}"
#define ERR(id, code, message)                                                                               \
    "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"error\":{\"code\":" #code ",\"message\":\"" message "\"}}"
#define REQ(id, rest) "{\"jsonrpc\":\"2.0\",\"id\":" id "," rest "}"
#define INVALID(id, what) ERR(id, -32600, "Invalid request: " what)

static const struct {
    const char *message;
    const char *answer;
} exchanges[] = {
    {REQ("1", "\"method\":\"echo\""), OK("1", "\"none\"")},
    {REQ("1", "\"method\":\"echo\",\"params\":null"), OK("1", "\"none\"")},
    {"\n\t " REQ("1", "\"method\":\"echo\"") " \r\n", OK("1", "\"none\"")},
    {REQ("1", "\"method\":\"echo\",\"params\":{ \"a\" : 1e3 }"), OK("1", "{ \"a\" : 1e3 }")},
    {REQ("1", "\"method\":\"\\u0065cho\""), OK("1", "\"none\"")},
    {REQ("1", "\"method\":\"twice\""), OK("1", "\"none\"")},
    {REQ("1", "\"method\":\"refuse\""), ERR("1", -32099, "no \\\"such\\\" thing: ctx")},
    {REQ("1", "\"method\":\"echo\",\"extra\":5"), OK("1", "\"none\"")},
    /* ids come back as they were written */
    {REQ("0", "\"method\":\"echo\""), OK("0", "\"none\"")},
    {REQ("-1", "\"method\":\"echo\""), OK("-1", "\"none\"")},
    {REQ("\"\"", "\"method\":\"echo\""), OK("\"\"", "\"none\"")},
    {REQ("\"1\"", "\"method\":\"echo\""), OK("\"1\"", "\"none\"")},
    {REQ("\"\xC3\xA9\\u0000\\\"\"", "\"method\":\"echo\""), OK("\"\xC3\xA9\\u0000\\\"\"", "\"none\"")},
    {REQ("2147483648", "\"method\":\"echo\""), OK("2147483648", "\"none\"")},
    {REQ("9007199254740993", "\"method\":\"echo\""), OK("9007199254740993", "\"none\"")},
    {REQ("18446744073709551615", "\"method\":\"echo\""), OK("18446744073709551615", "\"none\"")},
    {REQ("1e3", "\"method\":\"echo\""), OK("1e3", "\"none\"")},
    {REQ("1.5", "\"method\":\"echo\""), OK("1.5", "\"none\"")},
    {REQ("null", "\"method\":\"echo\""), OK("null", "\"none\"")},
    {REQ("true", "\"method\":\"echo\""), INVALID("null", "id must be a string, a number or null")},
    {REQ("{}", "\"method\":\"echo\""), INVALID("null", "id must be a string, a number or null")},
    {REQ("[]", "\"method\":\"echo\""), INVALID("null", "id must be a string, a number or null")},
    {REQ("1", "\"id\":1,\"method\":\"echo\""), INVALID("null", "id is given twice")},
    /* what is no request */
    {"{}", INVALID("null", "jsonrpc must be \\\"2.0\\\"")},
    {"5", INVALID("null", "it must be an object")},
    {"\"{}\"", INVALID("null", "it must be an object")},
    {"null", INVALID("null", "it must be an object")},
    {"{\"id\":7,\"method\":\"echo\"}", INVALID("7", "jsonrpc must be \\\"2.0\\\"")},
    {"{\"jsonrpc\":\"1.0\",\"id\":7,\"method\":\"echo\"}", INVALID("7", "jsonrpc must be \\\"2.0\\\"")},
    {"{\"jsonrpc\":2.0,\"id\":7,\"method\":\"echo\"}", INVALID("7", "jsonrpc must be \\\"2.0\\\"")},
    {REQ("7", "\"method\":5"), INVALID("7", "method must be a string")},
    {"{\"jsonrpc\":\"2.0\",\"id\":7}", INVALID("7", "method must be a string")},
    {"{\"jsonrpc\":\"2.0\",\"method\":5}", INVALID("null", "method must be a string")},
    {REQ("7", "\"method\":\"echo\",\"params\":\"x\""), INVALID("7", "params must be an object")},
    {REQ("7", "\"method\":\"echo\",\"params\":0"), INVALID("7", "params must be an object")},
    {REQ("7", "\"method\":\"echo\",\"params\":[1]"),
     ERR("7", -32602, "Invalid parameters: must be an object, not an array")},
    {REQ("7", "\"method\":\"echo\",\"method\":\"echo\""),
     INVALID("7", "jsonrpc, method or params is given twice")},
    {REQ("7", "\"method\":\"echo\",\"params\":{},\"p\\u0061rams\":{}"),
     INVALID("7", "jsonrpc, method or params is given twice")},
    {REQ("7", "\"method\":\"none\""), ERR("7", -32601, "Method not found: \\\"none\\\"")},
    {REQ("7", "\"method\":\"\""), ERR("7", -32601, "Method not found: \\\"\\\"")},
    {REQ("7", "\"method\":\"echo\\u0000\""), ERR("7", -32601, "Method not found: \\\"echo\\\\u0000\\\"")},
    {"", ERR("null", -32700, "Not valid JSON: unexpected end at byte 0")},
    {"   ", ERR("null", -32700, "Not valid JSON: unexpected end at byte 3")},
    {"invalid json", ERR("null", -32700, "Not valid JSON: unexpected character at byte 0")},
    {"{} {}", ERR("null", -32700, "Not valid JSON: more text behind the value at byte 3")},
    {"\xEF\xBB\xBF{}", ERR("null", -32700, "Not valid JSON: byte order mark at byte 0")},
    /* notifications */
    {"{\"jsonrpc\":\"2.0\",\"method\":\"echo\"}", ""},
    {"{\"jsonrpc\":\"2.0\",\"method\":\"refuse\"}", ""},
    {"{\"jsonrpc\":\"2.0\",\"method\":\"none\"}", ""},
    {"{\"jsonrpc\":\"2.0\",\"method\":\"echo\",\"params\":[1]}", ""},
    /* batches */
    {"[]", INVALID("null", "the batch is empty")},
    {" [ ] ", INVALID("null", "the batch is empty")},
    {"[1]", "[" INVALID("null", "it must be an object") "]"},
    {"[1,[],{}]", "[" INVALID("null", "it must be an object") "," INVALID(
                      "null", "it must be an object") "," INVALID("null", "jsonrpc must be \\\"2.0\\\"") "]"},
    {"[" REQ("1", "\"method\":\"echo\"") "," REQ(
         "2", "\"method\":\"none\"") ",{\"jsonrpc\":\"2.0\",\"method\":\"echo\"}, " REQ("\"3\"",
                                                                                        "\"method\":"
                                                                                        "\"refuse\"") "]",
     "[" OK("1", "\"none\"") "," ERR("2", -32601, "Method not found: \\\"none\\\"") "," ERR(
         "\"3\"", -32099, "no \\\"such\\\" thing: ctx") "]"},
    {"[{\"jsonrpc\":\"2.0\",\"method\":\"echo\"},{\"jsonrpc\":\"2.0\",\"method\":\"none\"}]", ""},
    {"[" REQ("1", "\"method\":\"text\"") "]",
     "[" OK("1", "\"{\\\"jsonrpc\\\":\\\"2.0\\\",\\\"id\\\":1,\\\"method\\\":\\\"text\\\"}\"") "]"},
};

static void answers_at_once(void **state)
{
    for (size_t i = 0; i < sizeof exchanges / sizeof *exchanges; i++) {
        struct rpc_message *m = take(exchanges[i].message);
        if (answer.times != 1 || strcmp(answer.text, exchanges[i].answer) != 0)
            fail_msg("%s\ngave (%d times) %s\nnot    %s", exchanges[i].message, answer.times, answer.text,
                     exchanges[i].answer);
        assert_null(m);
        if (answer.text[0])
            assert_int_equal(json_check(span_str(answer.text), NULL), 0);
        teardown(state);
        setup(state);
    }
}

static void long_method_names_are_unknown(void **state)
{
    (void)state;
    struct buf b BUF_AUTO = BUF_INIT;
    buf_adds(&b, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"");
    for (int i = 0; i < 130; i++)
        buf_addc(&b, 'x');
    buf_adds(&b, "\\u0065cho\"}"); /* must not be taken for "echo" when the part before doesn't fit */
    assert_null(take(b.data));
    assert_non_null(strstr(answer.text, "-32601"));
    assert_int_equal(seen.runs, 0);
    struct rpc_request r;
    assert_int_equal(rpc_request_parse(&r, span_of(&b), NULL), 0);
    assert_int_equal(r.method[0], '\0');
}

static void bounds_batches(void **state)
{
    struct buf b BUF_AUTO = BUF_INIT;
    for (int extra = 0; extra < 2; extra++) {
        buf_truncate(&b, 0);
        for (int i = 0; i < RPC_BATCH_MAX + extra; i++)
            buf_adds(&b, i == 0 ? "[" REQ("1", "\"method\":\"echo\"") : "," REQ("1", "\"method\":\"echo\""));
        buf_addc(&b, ']');
        assert_null(take(b.data));
        assert_int_equal(seen.runs, extra ? 0 : RPC_BATCH_MAX);
        assert_int_equal(json_check(span_str(answer.text), NULL), 0);
        teardown(state);
        setup(state);
    }
}

/* ---- answers that come later ---- */

static void answers_later(void **state)
{
    (void)state;
    struct rpc_message *m = take(REQ("5", "\"method\":\"wait\""));
    assert_non_null(m);
    assert_int_equal(answer.times, 0);
    rpc_result(seen.held[0], span_str("[1]"));
    rpc_result(seen.held[0], span_str("[2]")); /* ignored */
    assert_int_equal(answer.times, 1);
    assert_string_equal(answer.text, OK("5", "[1]"));
    assert_int_equal(seen.n_delivered, 0);
    rpc_message_delivered(m, true);
    assert_string_equal(seen.delivered, "y");
    assert_int_equal(seen.abandoned, 0);
}

static void tells_lost_answers(void **state)
{
    (void)state;
    struct rpc_message *m = take(REQ("5", "\"method\":\"hooked\""));
    assert_non_null(m); /* answered at once, but there is somebody to tell */
    assert_int_equal(answer.times, 1);
    rpc_message_delivered(m, false);
    assert_string_equal(seen.delivered, "n");
}

static void notifications_are_never_delivered(void **state)
{
    (void)state;
    struct rpc_message *m = take("{\"jsonrpc\":\"2.0\",\"method\":\"hooked\"}");
    assert_int_equal(answer.times, 1);
    assert_string_equal(answer.text, "");
    rpc_message_delivered(m, true);
    assert_string_equal(seen.delivered, "n");
}

static void abandons(void **state)
{
    (void)state;
    struct rpc_message *m = take(REQ("5", "\"method\":\"wait\""));
    rpc_message_abandon(m);
    assert_int_equal(seen.abandoned, 1);
    assert_int_equal(answer.times, 0);
    assert_int_equal(seen.n_delivered, 0);
}

static void runs_on_without_the_hook(void **state)
{
    (void)state;
    struct rpc_message *m = take(REQ("5", "\"method\":\"hold\""));
    rpc_message_abandon(m);
    rpc_null(seen.held[0]); /* still ours; ends the message (sanitizers see leaks) */
    assert_int_equal(answer.times, 0);
}

static void passes_responses_through(void **state)
{
    (void)state;
    struct rpc_message *m = take(REQ("5", "\"method\":\"hold\""));
    rpc_response(seen.held[0], span_str("{\"any\": \"thing\"}"));
    assert_string_equal(answer.text, "{\"any\": \"thing\"}");
    rpc_message_delivered(m, true);
}

/* ---- batches with answers that come later ---- */

#define BATCH                                                                                                \
    "[" REQ("1", "\"method\":\"hooked\"") "," REQ("2", "\"method\":\"wait\"") "," REQ(                       \
        "3", "\"method\":\"echo\"") ","                                                                      \
                                    "{\"jsonrpc\":\"2.0\",\"method\":\"wait\"}," REQ(                        \
                                        "4", "\"method\":\"wait\"") "]"

static void batches_run_in_order(void **state)
{
    (void)state;
    struct rpc_message *m = take(BATCH);
    assert_int_equal(seen.n_held, 1);
    assert_int_equal(seen.runs, 1);
    rpc_null(seen.held[0]);
    assert_int_equal(seen.n_held, 2);
    assert_int_equal(seen.runs, 2);
    rpc_null(seen.held[1]); /* the notification */
    rpc_null(seen.held[0]); /* answered long ago: ignored */
    assert_int_equal(answer.times, 0);
    rpc_null(seen.held[2]);
    assert_int_equal(answer.times, 1);
    assert_string_equal(answer.text, "[" OK("1", "\"none\"") "," OK("2", "null") "," OK(
                                         "3", "\"none\"") "," OK("4", "null") "]");
    rpc_message_delivered(m, true);
    assert_string_equal(seen.delivered, "yyny");
}

static void batches_stop_when_abandoned(void **state)
{
    (void)state;
    struct rpc_message *m = take(BATCH);
    rpc_message_abandon(m);
    assert_int_equal(seen.abandoned, 1);
    assert_int_equal(seen.n_held, 1);
    assert_int_equal(seen.runs, 1);
    assert_string_equal(seen.delivered, "n"); /* the first, whose answer is lost */
    assert_int_equal(answer.times, 0);
}

/* What waits for the one before itself: that one's answer has arrived as far as it is concerned. */
static void batches_deliver_in_turn(void **state)
{
    (void)state;
    struct rpc_message *m = take(
        "[" REQ("1", "\"method\":\"turn\",\"params\":{\"a\":1}") "," REQ("2", "\"method\":\"wait\"") "," REQ(
            "3", "\"method\":\"turn\",\"params\":{\"a\":1}") "," REQ("4", "\"method\":\"turn\"") "]");
    rpc_null(seen.held[0]);
    rpc_null(seen.held[1]);
    assert_string_equal(seen.delivered, "y");
    rpc_null(seen.held[2]); /* the last one has another turn */
    assert_string_equal(seen.delivered, "y");
    rpc_message_abandon(m);
    assert_string_equal(seen.delivered, "ynn"); /* the second and the third; the fourth has no answer */
}

/* A call that runs on is the last of its batch. */
static void batches_end_with_what_runs_on(void **state)
{
    (void)state;
    struct rpc_message *m = take("[" REQ("1", "\"method\":\"hold\"") "," REQ("2", "\"method\":\"echo\"") "]");
    rpc_message_abandon(m);
    rpc_null(seen.held[0]);
    assert_int_equal(seen.runs, 0);
    assert_int_equal(answer.times, 0);
}

/* ---- the envelope alone ---- */

#define GAP(gap, n)                                                                                          \
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"gap\",\"params\":{\"gap\":" gap ",\"n\":" n "}}"

static void takes_results_behind_a_gap(void **state)
{
    (void)state;
    static const char *const gaps[] = {GAP("0", "3"), GAP("5", "3"), GAP("36", "3"), GAP("100", "3")};
    static const char *const large[] = {GAP("0", "200000"), GAP("36", "200000"), GAP("100", "200000")};
    for (size_t i = 0; i < sizeof gaps / sizeof *gaps; i++) {
        assert_null(take(gaps[i]));
        assert_string_equal(answer.text, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"xxx\"}");
    }
    for (size_t i = 0; i < sizeof large / sizeof *large; i++) {
        struct span result;
        assert_null(take(large[i]));
        size_t n = strlen(answer.text), front = strlen("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":");
        assert_true(json_member(span_str(answer.text), "result", &result, NULL));
        assert_int_equal(result.n, 200002);
        assert_int_equal(strspn(result.s, "\"x"), 200002);
        assert_int_equal(n, (i == 0   ? front
                             : i == 1 ? 36
                                      : 100) +
                                200002 + 1); /* white space, where the gap is larger */
        assert_int_equal(json_check(span_str(answer.text), NULL), 0);
    }
    assert_null(take("[" GAP("5", "1") "," GAP("0", "2") "," GAP("90", "3") "]"));
#define RESULT(text) "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"" text "\"}"
    assert_string_equal(answer.text, "[" RESULT("x") "," RESULT("xx") "," RESULT("xxx") "]");
    int times = answer.times;
    assert_null(take("{\"jsonrpc\":\"2.0\",\"method\":\"gap\",\"params\":{\"gap\":5,\"n\":1}}"));
    assert_int_equal(answer.times, times + 1); /* a notification gets nothing */
    assert_string_equal(answer.text, "");
}

static void reads_requests(void **state)
{
    (void)state;
    struct rpc_request r;
    struct err err;
    assert_int_equal(
        rpc_request_parse(&r, span_str("{\"params\":{},\"id\":\"a\",\"method\":\"m\",\"jsonrpc\":\"2.0\"}"),
                          &err),
        0);
    assert_string_equal(r.method, "m");
    assert_true(span_is(r.method_text, "\"m\""));
    assert_true(span_is(r.id, "\"a\""));
    assert_true(span_is(r.params, "{}"));
    assert_int_equal(rpc_request_parse(&r, span_str("{\"jsonrpc\":\"2.0\",\"method\":\"m\"}"), &err), 0);
    assert_null(r.id.s);
    assert_null(r.params.s);
}

static void writes_requests(void **state)
{
    (void)state;
    struct buf b BUF_AUTO = BUF_INIT;
    rpc_put_request(&b, span_str("1e3"), "a\"b", span_str("{\"x\":1}"));
    assert_string_equal(buf_str(&b),
                        "{\"jsonrpc\":\"2.0\",\"id\":1e3,\"method\":\"a\\\"b\",\"params\":{\"x\":1}}");
    buf_truncate(&b, 0);
    rpc_put_request(&b, span_str("1"), "m", (struct span){NULL, 0});
    assert_string_equal(buf_str(&b), "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(answers_at_once, setup, teardown),
        cmocka_unit_test_setup_teardown(long_method_names_are_unknown, setup, teardown),
        cmocka_unit_test_setup_teardown(bounds_batches, setup, teardown),
        cmocka_unit_test_setup_teardown(answers_later, setup, teardown),
        cmocka_unit_test_setup_teardown(tells_lost_answers, setup, teardown),
        cmocka_unit_test_setup_teardown(notifications_are_never_delivered, setup, teardown),
        cmocka_unit_test_setup_teardown(abandons, setup, teardown),
        cmocka_unit_test_setup_teardown(runs_on_without_the_hook, setup, teardown),
        cmocka_unit_test_setup_teardown(passes_responses_through, setup, teardown),
        cmocka_unit_test_setup_teardown(batches_run_in_order, setup, teardown),
        cmocka_unit_test_setup_teardown(batches_stop_when_abandoned, setup, teardown),
        cmocka_unit_test_setup_teardown(batches_deliver_in_turn, setup, teardown),
        cmocka_unit_test_setup_teardown(batches_end_with_what_runs_on, setup, teardown),
        cmocka_unit_test_setup_teardown(takes_results_behind_a_gap, setup, teardown),
        cmocka_unit_test(reads_requests),
        cmocka_unit_test(writes_requests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
