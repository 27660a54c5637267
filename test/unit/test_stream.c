/* The stream's side that is asked, by the bytes of a scripted peer. */
#include "support.h"

#include "mem.h"
#include "rpc.h"
#include "stream.h"
#include "version.h"

#define REQUEST(id, method) "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"" method "\"}"
#define ACK(ids) "{\"jsonrpc\":\"2.0\",\"method\":\"rpc.ack\",\"params\":{\"ids\":[" ids "]}}\n"
#define RESULT(id, result) "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"result\":" result "}"
#define ERROR(id, code, message)                                                                             \
    "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"error\":{\"code\":" code ",\"message\":\"" message "\"}}"

/* What the owner has seen: calls that it holds, and how others have ended: 'd' delivered, 'u' answered and
 * not, 'a' abandoned. */
static struct {
    struct stream *stream;
    struct stream_call *held[2000];
    size_t n_held;
    char ended[4000];
    size_t n_ended;
} my;

static void answer_with(struct stream_call *call, const char *result, bool kept)
{
    struct buf text BUF_AUTO = BUF_INIT;
    rpc_put_result(&text, call->id, (struct span){result, strlen(result)});
    stream_answer(call, span_of(&text), kept);
}

/* "now…" is answered at once, "plain…" at once and not kept; others are held. */
static void begin(void *arg, struct stream_call *call)
{
    struct rpc_request r;
    assert_ptr_equal(arg, &my);
    assert_int_equal(rpc_request_parse(&r, call->text, NULL), 0);
    call->work = &my;
    if (strncmp(r.method, "now", 3) == 0)
        answer_with(call, "1", true);
    else if (strncmp(r.method, "plain", 5) == 0)
        answer_with(call, "2", false);
    else
        my.held[my.n_held++] = call;
}

static void end(void *arg, struct stream_call *call, bool delivered)
{
    assert_ptr_equal(arg, &my);
    assert_ptr_equal(call->work, &my);
    my.ended[my.n_ended++] = delivered ? 'd' : call->answered ? 'u' : 'a';
}

/* Everything that was said since. */
static void assert_said(const char *text)
{
    struct buf *out = stream_out(my.stream);
    assert_string_equal(buf_str(out), text);
    buf_release(out);
}

static void assert_ended(const char *how)
{
    my.ended[my.n_ended] = '\0';
    assert_string_equal(my.ended, how);
    my.n_ended = 0;
}

static void feed(const char *text)
{
    stream_feed(my.stream, text, strlen(text));
}

static int setup(void **state)
{
    static const struct stream_owner owner = {.begin = begin, .end = end, .arg = &my};
    (void)state;
    memset(&my, 0, sizeof my);
    my.stream = stream_new(&owner, 4);
    buf_release(stream_out(my.stream));
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    if (my.stream)
        stream_free(my.stream);
    return 0;
}

static void test_hello(void **state)
{
    (void)state;
    struct stream_owner owner = {.begin = begin, .end = end, .arg = &my};
    struct stream *s = stream_new(&owner, 7);
    struct span hello = span_of(stream_out(s)), params, limits, value;
    assert_int_equal(json_check(hello, NULL), 0);
    assert_true(json_member(hello, "params", &params, NULL));
    assert_true(json_member(params, "build", &value, NULL) && json_string_is(value, toolbox_build_id));
    assert_true(json_member(params, "limits", &limits, NULL));
    assert_true(json_member(limits, "open", &value, NULL) && span_is(value, "7"));
    assert_int_equal(hello.s[hello.n - 1], '\n');
    stream_free(s);
}

static void test_answers_as_they_finish(void **state)
{
    (void)state;
    feed(REQUEST("1", "later") "\n" REQUEST("\"two\"", "later") "\n" REQUEST("3", "plain") "\n");
    assert_said(RESULT("3", "2") "\n");
    assert_ended("d");
    assert_int_equal(stream_open(my.stream), 2);
    answer_with(my.held[1], "[]", true);
    assert_said(RESULT("\"two\"", "[]") "\n");
    answer_with(my.held[0], "{}", true);
    assert_said(RESULT("1", "{}") "\n");
    assert_int_equal(stream_open(my.stream), 0);
    assert_ended("");
}

static void test_byte_by_byte(void **state)
{
    (void)state;
    for (const char *at = "\r\n" REQUEST("1", "now") "\r\n  \n" ACK("1"); *at; at++)
        stream_feed(my.stream, at, 1);
    assert_said(RESULT("1", "1") "\n");
    assert_ended("d");
}

static void test_acknowledgement_alone_delivers(void **state)
{
    (void)state;
    feed(REQUEST("1", "now") "\n" REQUEST("2", "now") "\n" REQUEST("3", "now") "\n");
    buf_release(stream_out(my.stream));
    assert_ended("");
    feed(ACK("9,2"));
    assert_ended("d");
    feed("{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"rpc.ack\",\"params\":{\"ids\":[1,1]}}\n");
    assert_said(RESULT("5", "null") "\n");
    assert_ended("d");
    stream_free(my.stream);
    my.stream = NULL;
    assert_ended("u");
}

static void test_the_end_abandons_and_gives_back(void **state)
{
    (void)state;
    feed(REQUEST("1", "later") "\n" REQUEST("2", "now") "\n[" REQUEST("3", "later") "," REQUEST("4",
                                                                                                "now") "]\n");
    stream_free(my.stream);
    my.stream = NULL;
    assert_ended("auau");
}

static void test_cancel(void **state)
{
    (void)state;
    feed(REQUEST("1", "later") "\n" REQUEST("2", "now") "\n");
    buf_release(stream_out(my.stream));
    feed("{\"jsonrpc\":\"2.0\",\"id\":8,\"method\":\"rpc.cancel\",\"params\":{\"id\":1}}\n");
    assert_said(ERROR("1", "-32099", "cancelled") "\n" RESULT("8", "true") "\n");
    assert_ended("a");
    feed("{\"jsonrpc\":\"2.0\",\"method\":\"rpc.cancel\",\"params\":{\"id\":2}}\n");
    assert_said("");
    assert_ended("u");
    feed("{\"jsonrpc\":\"2.0\",\"id\":8,\"method\":\"rpc.cancel\",\"params\":{\"id\":2}}\n");
    assert_said(RESULT("8", "false") "\n");
    feed("{\"jsonrpc\":\"2.0\",\"id\":8,\"method\":\"rpc.cancel\"}\n");
    assert_said(ERROR("8", "-32602", "Invalid parameters: id: is missing") "\n");
}

static void test_batches(void **state)
{
    (void)state;
    feed("[" REQUEST("1", "later") ",7," REQUEST("2", "now") ",{\"jsonrpc\":\"2.0\",\"method\":\"now\"}]\n");
    assert_said("");
    answer_with(my.held[0], "0", true);
    assert_said("[" ERROR("null", "-32600", "Invalid request: it must be an object") "," RESULT(
        "2", "1") "," RESULT("1", "0") "]\n");
    assert_ended("d"); /* the notification */
    feed(ACK("2") ACK("1"));
    assert_ended("dd");
    feed("[{\"jsonrpc\":\"2.0\",\"method\":\"now\"}]\n");
    assert_said("");
    feed("[]\n");
    assert_said(ERROR("null", "-32600", "Invalid request: a batch has from 1 to 1000 requests") "\n");
}

static void test_a_cancelled_call_lets_its_batch_go(void **state)
{
    (void)state;
    feed("[" REQUEST("1", "later") "," REQUEST("2", "plain") "]\n");
    feed("{\"jsonrpc\":\"2.0\",\"method\":\"rpc.cancel\",\"params\":{\"id\":1}}\n");
    assert_said("[" RESULT("2", "2") "," ERROR("1", "-32099", "cancelled") "]\n");
}

static void test_bad_lines_are_answered(void **state)
{
    (void)state;
    feed("{\n");
    assert_said(ERROR("null", "-32700", "Not valid JSON: unexpected end at byte 1") "\n");
    feed("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":5}\n");
    assert_said(ERROR("1", "-32600", "Invalid request: method must be a string") "\n");
    feed(REQUEST("1", "later") "\n" REQUEST("1", "now") "\n");
    assert_said(ERROR("1", "-32600", "Invalid request: a call with this id is still open") "\n");
    feed(REQUEST("2", "now") "\n");
    assert_said(RESULT("2", "1") "\n");
}

/* How long it may be depends on the memory that there is. */
static void assert_said_of_a_long_line(void)
{
    struct buf *said = stream_out(my.stream);
    if (!strstr(buf_str(said), "Invalid request: a line is longer than "))
        fail_msg("%s", buf_str(said));
    buf_release(said);
}

static void test_a_line_has_its_share_of_the_memory(void **state)
{
    struct rlimit limit, low;
    size_t n = 1u << 20, fed = 0;
    (void)state;
    if (SANITIZED) /* which takes terabytes of addresses for itself */
        skip();
    char *piece = mem_alloc(n);
    memset(piece, ' ', n);
    buf_release(stream_out(my.stream));
    assert_int_equal(getrlimit(RLIMIT_AS, &limit), 0);
    low = (struct rlimit){256u << 20, limit.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_AS, &low), 0);
    while (stream_out(my.stream)->len == 0 && fed++ < 100)
        stream_feed(my.stream, piece, n);
    assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
    free(piece);
    assert_true(fed < 30);
    assert_said_of_a_long_line();
}

static void test_a_line_too_long_is_skipped(void **state)
{
    (void)state;
    size_t n = 1u << 20;
    char *piece = mem_alloc(n);
    memset(piece, ' ', n);
    for (size_t i = 0; i <= STREAM_LINE_MAX / n; i++)
        stream_feed(my.stream, piece, n);
    assert_said_of_a_long_line();
    stream_feed(my.stream, piece, n);
    free(piece);
    feed("}\n" REQUEST("1", "now") "\n");
    assert_said(RESULT("1", "1") "\n");
}

static void test_so_many_calls_and_no_more(void **state)
{
    (void)state;
    feed(REQUEST("1", "now") "\n" REQUEST("2", "later") "\n" REQUEST("3", "now") "\n" REQUEST("4",
                                                                                              "now") "\n");
    buf_release(stream_out(my.stream));
    feed(REQUEST("5", "now") "\n");
    struct span error, answer = span_of(stream_out(my.stream));
    assert_int_equal(json_check(answer, NULL), 0);
    assert_true(json_member(answer, "error", &error, NULL));
    buf_release(stream_out(my.stream));
    feed(ACK("3") REQUEST("5", "now") "\n");
    assert_said(RESULT("5", "1") "\n");
}

static void test_full_output_stalls_the_input(void **state)
{
    (void)state;
    char *big = mem_alloc(STREAM_OUT_FULL + 3);
    memset(big, '7', STREAM_OUT_FULL + 2);
    big[STREAM_OUT_FULL + 2] = '\0';
    feed(REQUEST("1", "later") "\n");
    answer_with(my.held[0], big, true);
    free(big);
    assert_true(stream_is_full(my.stream));
    feed(REQUEST("2", "now") "\n" REQUEST("3", "now") "\n");
    assert_int_equal(stream_open(my.stream), 0);
    buf_release(stream_out(my.stream));
    stream_go_on(my.stream);
    assert_said(RESULT("2", "1") "\n" RESULT("3", "1") "\n");
}

static void test_an_owner_who_confirms(void **state)
{
    (void)state;
    struct stream_owner owner = {.begin = begin, .end = end, .arg = &my, .confirms = true};
    stream_free(my.stream);
    my.stream = stream_new(&owner, 4);
    feed(REQUEST("1", "now") "\n");
    buf_release(stream_out(my.stream));
    feed("{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"rpc.ack\",\"params\":{\"ids\":[1]}}\n");
    assert_said(""); /* not before he says so */
    assert_ended("d");
    answer_with(my.held[0], "null", false);
    assert_said(RESULT("2", "null") "\n");
    assert_ended("d");
    feed(REQUEST("3", "now") "\n" ACK("3"));
    assert_ended("d");
    assert_int_equal(my.n_held, 1);
}

#define EVENT(id, seq, event)                                                                                \
    "{\"jsonrpc\":\"2.0\",\"method\":\"rpc.event\",\"params\":{\"subscription\":" id ",\"seq\":" seq         \
    ",\"event\":" event "}}\n"
#define HEARD(id, seq)                                                                                       \
    "{\"jsonrpc\":\"2.0\",\"method\":\"rpc.ack\",\"params\":{\"subscription\":" id ",\"seq\":" seq "}}\n"

static void heard(void *arg, struct stream_call *call)
{
    assert_ptr_equal(arg, &my);
    stream_event(call, (struct span){"[2]", 3});
}

static void test_events_before_the_answer(void **state)
{
    (void)state;
    struct stream_owner owner = {.begin = begin, .end = end, .arg = &my, .heard = heard};
    stream_free(my.stream);
    my.stream = stream_new(&owner, 4);
    buf_release(stream_out(my.stream));
    feed(REQUEST("\"a\"", "later") "\n" HEARD("\"a\"", "0")); /* there is none yet */
    assert_said("");
    stream_event(my.held[0], (struct span){"{\"x\":1}", 7});
    assert_said(EVENT("\"a\"", "1", "{\"x\":1}"));
    feed(HEARD("\"a\"", "2") HEARD("\"b\"", "1") HEARD("\"a\"", "0"));
    assert_said(""); /* not that one */
    feed(HEARD("\"a\"", "1"));
    assert_said(EVENT("\"a\"", "2", "[2]"));
    feed("{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"rpc.ack\",\"params\":{\"subscription\":\"a\"}}\n");
    assert_said(
        ERROR("9", "-32602",
              "Invalid parameters: ids: must be an array of ids (or subscription and seq given)") "\n");
    answer_with(my.held[0], "3", true);
    assert_said(RESULT("\"a\"", "3") "\n");
    feed(HEARD("\"a\"", "2")); /* too late */
    assert_said("");
    assert_ended("");
    feed(ACK("\"a\""));
    assert_ended("d");
}

static void test_events_end_with_a_cancel(void **state)
{
    (void)state;
    feed(REQUEST("1", "later") "\n");
    stream_event(my.held[0], (struct span){"0", 1});
    feed(HEARD("1", "1")); /* nobody has to know */
    buf_release(stream_out(my.stream));
    feed("{\"jsonrpc\":\"2.0\",\"method\":\"rpc.cancel\",\"params\":{\"id\":1}}\n" HEARD("1", "1"));
    assert_said(ERROR("1", "-32099", "cancelled") "\n");
    assert_ended("a");
}

#define ALIVE "{\"jsonrpc\":\"2.0\",\"method\":\"rpc.alive\"}\n"

static void test_says_that_it_is_alive(void **state)
{
    (void)state;
    stream_tick(my.stream); /* the hello was said before */
    assert_said("");
    assert_true(stream_tick(my.stream));
    assert_said(ALIVE);
    feed(REQUEST("1", "plain") "\n");
    buf_release(stream_out(my.stream));
    stream_tick(my.stream);
    assert_said("");
}

static void test_a_peer_that_goes_silent_is_dead(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++)
        assert_true(stream_tick(my.stream)); /* it never said that it would say something */
    feed(ALIVE);
    for (int i = 0; i < 3; i++)
        assert_true(stream_tick(my.stream));
    feed("\n");
    for (int i = 0; i < 3; i++)
        assert_true(stream_tick(my.stream));
    assert_false(stream_tick(my.stream));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_hello, setup, teardown),
        cmocka_unit_test_setup_teardown(test_answers_as_they_finish, setup, teardown),
        cmocka_unit_test_setup_teardown(test_byte_by_byte, setup, teardown),
        cmocka_unit_test_setup_teardown(test_acknowledgement_alone_delivers, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_end_abandons_and_gives_back, setup, teardown),
        cmocka_unit_test_setup_teardown(test_cancel, setup, teardown),
        cmocka_unit_test_setup_teardown(test_batches, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_cancelled_call_lets_its_batch_go, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bad_lines_are_answered, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_line_too_long_is_skipped, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_line_has_its_share_of_the_memory, setup, teardown),
        cmocka_unit_test_setup_teardown(test_so_many_calls_and_no_more, setup, teardown),
        cmocka_unit_test_setup_teardown(test_full_output_stalls_the_input, setup, teardown),
        cmocka_unit_test_setup_teardown(test_an_owner_who_confirms, setup, teardown),
        cmocka_unit_test_setup_teardown(test_events_before_the_answer, setup, teardown),
        cmocka_unit_test_setup_teardown(test_events_end_with_a_cancel, setup, teardown),
        cmocka_unit_test_setup_teardown(test_says_that_it_is_alive, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_peer_that_goes_silent_is_dead, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
