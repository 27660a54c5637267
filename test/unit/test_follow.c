/* What is followed over a stream: which methods, from answer to event, and the next poll. */
#include "support.h"

#include "commands/exec/follow.h"

static struct span of(const char *s)
{
    return (struct span){s, strlen(s)};
}

static void test_names(void **state)
{
    (void)state;
    assert_true(follow_is("bash_session_watch"));
    assert_true(follow_is("exec_remote_follow"));
    assert_false(follow_is("_watch"));
    assert_false(follow_is("bash_session_watched"));
    assert_false(follow_is("follow_me"));
}

static void test_answers(void **state)
{
    struct buf cursor BUF_AUTO = BUF_INIT;
    struct span event;
    (void)state;
    assert_true(follow_goes_on(of("{\"id\":1,\"result\":{\"x\":[1],\"cursor\":\"a,b\"}}"), &event, &cursor));
    assert_string_equal(buf_str(&cursor), "\"a,b\"");
    assert_true(span_is(event, "{\"x\":[1],\"cursor\":\"a,b\"}"));
    assert_true(follow_goes_on(of("{\"id\":1,\"result\":{\"cursor\":7,\"ended\":false}}"), &event, &cursor));
    assert_string_equal(buf_str(&cursor), "7");
    assert_false(follow_goes_on(of("{\"id\":1,\"result\":{\"cursor\":8,\"ended\":true}}"), &event, &cursor));
    assert_false(follow_goes_on(of("{\"id\":1,\"result\":{\"x\":8}}"), &event, &cursor));
    assert_false(follow_goes_on(of("{\"id\":1,\"result\":null}"), &event, &cursor));
    assert_false(follow_goes_on(of("{\"id\":1,\"error\":{\"code\":1,\"message\":\"\"}}"), &event, &cursor));
}

static void assert_next(const char *request, const char *next)
{
    struct buf out BUF_AUTO = BUF_INIT, cursor BUF_AUTO = BUF_INIT;
    buf_adds(&cursor, "42");
    follow_put_next(&out, of(request), &cursor);
    assert_string_equal(buf_str(&out), next);
}

static void test_next_polls(void **state)
{
    (void)state;
    assert_next("{\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":\"a_watch\"}",
                "{\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":\"a_watch\",\"params\":{\"cursor\":42}}");
    assert_next(
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a_watch\",\"params\":{ \"cursor\" : {}, \"s\":\"}\" }}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a_watch\",\"params\":{\"s\":\"}\",\"cursor\":42}}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_next_polls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
