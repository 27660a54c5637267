/* The stream's side that asks, by the bytes of a scripted peer; and both sides with each other. */
#include "support.h"

#include "mem.h"
#include "rpc.h"
#include "stream.h"
#include "stream_client.h"

#define HELLO "{\"jsonrpc\":\"2.0\",\"method\":\"rpc.hello\",\"params\":{\"pid\":7}}\n"

static struct {
    struct stream_client *client;
    struct buf heard; /* what the owner was told, a line each */
} my;

static void on_hello(void *arg, struct span params)
{
    assert_ptr_equal(arg, &my);
    buf_addf(&my.heard, "hello %.*s\n", (int)params.n, params.s);
}

static void on_answer(void *arg, void *work, struct span response)
{
    assert_ptr_equal(arg, &my);
    buf_addf(&my.heard, "%s %.*s\n", (const char *)work, (int)response.n, response.s);
}

static void on_event(void *arg, void *work, struct span event)
{
    assert_ptr_equal(arg, &my);
    buf_addf(&my.heard, "%s event %.*s\n", (const char *)work, (int)event.n, event.s);
}

static void assert_buf(struct buf *b, const char *text)
{
    assert_string_equal(buf_str(b), text);
    buf_release(b);
}

static int feed(const char *text)
{
    return stream_client_feed(my.client, text, strlen(text));
}

static struct stream_request *ask(const char *text, const char *id, char *work)
{
    const char *at = id ? strstr(text, id) : NULL;
    return stream_client_send(my.client, (struct span){text, strlen(text)},
                              (struct span){at, id ? strlen(id) : 0}, work);
}

static int setup(void **state)
{
    static const struct stream_client_owner owner = {
        .hello = on_hello, .answer = on_answer, .event = on_event, .arg = &my};
    (void)state;
    buf_init(&my.heard, BUF_NO_MAX);
    my.client = stream_client_new(&owner);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    stream_client_free(my.client);
    buf_release(&my.heard);
    return 0;
}

static char a[] = "a", b[] = "b";

static void test_two_with_one_id(void **state)
{
    (void)state;
    assert_int_equal(feed(HELLO), 0);
    struct stream_request *first = ask("{\"id\":\"x\",\"method\":\"m\"}", "\"x\"", a);
    struct stream_request *second = ask("{\"method\":\"n\",\"id\":\"x\"}", "\"x\"", b);
    assert_null(ask("{\"method\":\"o\"}", NULL, NULL));
    assert_buf(stream_client_out(my.client),
               "{\"id\":1,\"method\":\"m\"}\n{\"method\":\"n\",\"id\":2}\n{\"method\":\"o\"}\n");
    for (const char *at = "{\"id\":2,\"result\":[1]}\n{\"result\":0,\"id\":1}\n"; *at; at++)
        assert_int_equal(stream_client_feed(my.client, at, 1), 0);
    assert_buf(&my.heard,
               "hello {\"pid\":7}\nb {\"id\":\"x\",\"result\":[1]}\na {\"result\":0,\"id\":\"x\"}\n");
    stream_client_settle(second, true);
    stream_client_settle(first, false);
    assert_buf(stream_client_out(my.client),
               "{\"jsonrpc\":\"2.0\",\"method\":\"rpc.ack\",\"params\":{\"ids\":[2]}}\n"
               "{\"jsonrpc\":\"2.0\",\"method\":\"rpc.cancel\",\"params\":{\"id\":1}}\n");
}

#define EVENT(params) "{\"jsonrpc\":\"2.0\",\"method\":\"rpc.event\",\"params\":" params "}\n"

static void test_events_of_two(void **state)
{
    (void)state;
    assert_int_equal(feed(HELLO), 0);
    struct stream_request *first = ask("{\"id\":\"x\",\"method\":\"m\"}", "\"x\"", a);
    struct stream_request *second = ask("{\"id\":\"x\",\"method\":\"m\"}", "\"x\"", b);
    buf_release(stream_client_out(my.client));
    buf_release(&my.heard);
    assert_int_equal(feed(EVENT("{\"subscription\":2,\"seq\":1,\"event\":{\"n\":1}}")
                              EVENT("{\"subscription\":1,\"seq\":7,\"event\":[]}")
                                  EVENT("{\"subscription\":3,\"seq\":1,\"event\":0}") EVENT("{\"seq\":1}")),
                     0);
    assert_buf(&my.heard, "b event {\"n\":1}\na event []\n");
    stream_client_heard(first);
    assert_buf(stream_client_out(my.client), "{\"jsonrpc\":\"2.0\",\"method\":\"rpc.ack\",\"params\":{"
                                             "\"subscription\":1,\"seq\":7}}\n");
    stream_client_settle(second, false);
    assert_int_equal(feed(EVENT("{\"subscription\":2,\"seq\":2,\"event\":0}")), 0);
    assert_buf(&my.heard, "");
}

static void test_what_nobody_waits_for_is_passed_over(void **state)
{
    (void)state;
    feed(HELLO);
    stream_client_settle(ask("{\"id\":5}", "5", a), false);
    buf_release(&my.heard);
    assert_int_equal(feed("{\"id\":1,\"result\":0}\n{\"id\":9,\"result\":0}\n{\"id\":\"z\",\"error\":{}}\n"
                          "{\"method\":\"rpc.alive\"}\n{}\n"),
                     0);
    assert_buf(&my.heard, "");
}

static void test_a_second_answer_is_none(void **state)
{
    (void)state;
    feed(HELLO);
    struct stream_request *r = ask("{\"id\":5}", "5", a);
    buf_release(&my.heard);
    feed("{\"id\":1,\"result\":0}\n{\"id\":1,\"result\":1}\n");
    assert_buf(&my.heard, "a {\"id\":5,\"result\":0}\n");
    stream_client_settle(r, true);
}

static void test_what_is_no_stream_of_ours(void **state)
{
    static const char *const texts[] = {
        "Welcome!\n", "{\"id\":1,\"result\":0}\n", "[]\n", "\n", "{\"method\":\"rpc.hello\"}\n",
        HELLO "{\n",  HELLO "bash: not found\n"};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        teardown(state);
        setup(state);
        assert_int_equal(feed(texts[i]), -1);
    }
}

/* Bytes alone, of one who never says hello, are no sign of life. */
static void test_a_drip_is_no_hello(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(feed("x"), 0);
        assert_true(stream_client_tick(my.client));
    }
    assert_int_equal(feed("x"), 0);
    assert_false(stream_client_tick(my.client));
}

static void test_four_silent_ticks(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++)
        assert_true(stream_client_tick(my.client));
    feed(HELLO);
    for (int i = 0; i < 3; i++)
        assert_true(stream_client_tick(my.client));
    assert_false(stream_client_tick(my.client));
}

/* ---- with the other side ---- */

static size_t delivered, undelivered;

static void begin(void *arg, struct stream_call *call)
{
    struct buf text BUF_AUTO = BUF_INIT;
    (void)arg;
    rpc_put_result(&text, call->id, call->id);
    stream_answer(call, span_of(&text), true);
}

static void end(void *arg, struct stream_call *call, bool was_delivered)
{
    (void)arg, (void)call;
    *(was_delivered ? &delivered : &undelivered) += 1;
}

static void carry(struct stream *s)
{
    struct buf *out = stream_client_out(my.client);
    stream_feed(s, buf_str(out), out->len);
    buf_release(out);
    out = stream_out(s);
    assert_int_equal(stream_client_feed(my.client, buf_str(out), out->len), 0);
    buf_release(out);
}

static void test_both_sides(void **state)
{
    static const struct stream_owner owner = {.begin = begin, .end = end};
    struct stream_request *requests[3];
    struct stream *s = stream_new(&owner, 10);
    (void)state;
    for (int i = 0; i < 3; i++)
        requests[i] = ask("{\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":\"m\"}", "\"q\"", a);
    carry(s);
    assert_non_null(strstr(my.heard.data, "a {\"jsonrpc\":\"2.0\",\"id\":\"q\",\"result\":3}\n"));
    for (int i = 0; i < 3; i++)
        stream_client_settle(requests[i], i > 0);
    carry(s);
    assert_int_equal(delivered, 2);
    assert_int_equal(undelivered, 1);
    stream_free(s);
    assert_int_equal(undelivered, 1);
}

static void test_an_answer_has_its_share_of_the_memory(void **state)
{
    struct rlimit limit, low;
    size_t n = 1u << 20, fed = 0;
    (void)state;
    if (SANITIZED) /* which takes terabytes of addresses for itself */
        skip();
    char *piece = mem_alloc(n);
    memset(piece, ' ', n);
    assert_int_equal(getrlimit(RLIMIT_AS, &limit), 0);
    low = (struct rlimit){256u << 20, limit.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_AS, &low), 0);
    while (fed++ < 100 && stream_client_feed(my.client, piece, n) == 0)
        continue;
    assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
    free(piece);
    assert_true(fed < 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_two_with_one_id, setup, teardown),
        cmocka_unit_test_setup_teardown(test_events_of_two, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_nobody_waits_for_is_passed_over, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_second_answer_is_none, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_is_no_stream_of_ours, setup, teardown),
        cmocka_unit_test_setup_teardown(test_four_silent_ticks, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_drip_is_no_hello, setup, teardown),
        cmocka_unit_test_setup_teardown(test_both_sides, setup, teardown),
        cmocka_unit_test_setup_teardown(test_an_answer_has_its_share_of_the_memory, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
