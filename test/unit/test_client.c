#include <signal.h>
#include <sys/time.h>

#include "support.h"

#include "served.h"

static struct span span_str(const char *s)
{
    return (struct span){s, strlen(s)};
}

#define REQ(method, params) "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"" method "\",\"params\":" params "}"
#define OK(result) "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":" result "}"

/* ---- blocking ---- */

static void calls(void **state)
{
    (void)state;
    struct err err;
    struct buf b BUF_AUTO = BUF_INIT;
    int fd = dial();
    assert_int_equal(client_call(fd, span_str(REQ("late", "{\"a\":1}")), &b, -1, &err), 0);
    assert_string_equal(buf_str(&b), OK("{\"a\":1}"));
    expect_state(served.path, "open 0 pending 0 abandoned 0 delivered 0 lost 0");
    client_delivered(fd);
    close(fd);
    expect_state(served.path, "open 0 pending 0 abandoned 0 delivered 1 lost 0");
}

static void on_alarm(int signal)
{
    (void)signal;
}

/* Each wait is interrupted again and again, and goes on. */
static void signals_end_no_call(void **state)
{
    (void)state;
    struct sigaction act = {.sa_handler = on_alarm}, old;
    struct itimerval often = {{0, 2000}, {0, 2000}}, never = {0};
    struct err err;
    struct buf b BUF_AUTO = BUF_INIT;
    int fd = dial();
    assert_int_equal(sigaction(SIGALRM, &act, &old), 0);
    assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
    assert_int_equal(client_call(fd, span_str(REQ("wait", "{}")), &b, 100, &err), -1);
    assert_string_equal(err.msg, "no answer within 100 ms");
    assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
    assert_int_equal(sigaction(SIGALRM, &old, NULL), 0);
    close(fd);
}

static void says_when_an_answer_was_lost(void **state)
{
    (void)state;
    static const char *const requests[] = {REQ("late", "{}"), REQ("size", "{\"n\":1}"),
                                           REQ("size", "{\"n\":16000}"), REQ("size", "{\"n\":17000}"),
                                           REQ("size", "{\"n\":3000000}")};
    char expected[128];
    for (int i = 0; i < 5; i++) {
        struct buf b BUF_AUTO = BUF_INIT;
        int fd = dial();
        assert_int_equal(client_call(fd, span_str(requests[i]), &b, -1, NULL), 0);
        assert_int_equal(json_check(span_of(&b), NULL), 0);
        close(fd); /* not delivered: the whole answer was read, but for its last byte */
        snprintf(expected, sizeof expected, "open 0 pending 0 abandoned 0 delivered 0 lost %d", i + 1);
        expect_state(served.path, expected);
    }
}

static void takes_answers_of_any_size(void **state)
{
    (void)state;
    /* Around the sizes where what was looked at is or isn't all of the answer, and one of many pieces. */
    static const size_t sizes[] = {0, 1, 16384 - 120, 16384 - 110, 16384, 1 << 20, (1 << 20) + 1, 30000000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (size_t n = sizes[i]; n < sizes[i] + (sizes[i] == 16384 - 120 ? 40 : 1); n++) {
            char request[128];
            struct buf b BUF_AUTO = BUF_INIT;
            snprintf(request, sizeof request, REQ("size", "{\"n\":%zu}"), n);
            int fd = dial();
            assert_int_equal(client_call(fd, span_str(request), &b, -1, NULL), 0);
            assert_int_equal(b.len, n + strlen(OK("\"\"")));
            assert_int_equal(json_check(span_of(&b), NULL), 0);
            client_delivered(fd);
            close(fd);
        }
    }
    expect_state(served.path, "open 0 pending 0 abandoned 0 delivered 47 lost 0");
}

static void sends_large_requests(void **state)
{
    (void)state;
    struct buf request BUF_AUTO = BUF_INIT, b BUF_AUTO = BUF_INIT;
    buf_adds(&request, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"length\",\"params\":{\"a\":\"");
    for (int i = 0; i < 2000000; i++)
        buf_adds(&request, "0123456789");
    buf_adds(&request, "\"}}");
    int fd = dial();
    assert_int_equal(client_call(fd, span_of(&request), &b, 60000, NULL), 0);
    char expected[128];
    snprintf(expected, sizeof expected, OK("%zu"), request.len);
    assert_string_equal(buf_str(&b), expected);
    close(fd);
}

static void gets_nothing_for_notifications(void **state)
{
    (void)state;
    struct buf b BUF_AUTO = BUF_INIT;
    int fd = dial();
    assert_int_equal(client_call(fd, span_str("{\"jsonrpc\":\"2.0\",\"method\":\"echo\"}"), &b, -1, NULL), 0);
    assert_int_equal(b.len, 0);
    client_delivered(fd);
    close(fd);
}

static void gives_up_in_time(void **state)
{
    (void)state;
    struct err err;
    struct buf b BUF_AUTO = BUF_INIT;
    int fd = dial();
    assert_int_equal(client_call(fd, span_str(REQ("wait", "{}")), &b, 50, &err), -1);
    assert_int_equal(err.code, ERR_INTERNAL);
    assert_string_equal(err.msg, "no answer within 50 ms");
    close(fd);
    expect_state(served.path, "open 0 pending 0 abandoned 1 delivered 0 lost 0");
}

/* A peer that says exactly this, in one piece or byte by byte, and closes. */
static int canned(const char *answer, bool slowly, struct buf *b, struct err *err)
{
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        char data[4096];
        close(ends[0]);
        if (recv(ends[1], data, sizeof data, 0) <= 0)
            _exit(1);
        for (size_t i = 0, n = strlen(answer); i < n; i += slowly ? 1 : n) {
            ssize_t sent = send(ends[1], answer + i, slowly ? 1 : n, MSG_NOSIGNAL);
            if (slowly && sent > 0)
                usleep(100);
        }
        _exit(0);
    }
    close(ends[1]);
    int result = client_call(ends[0], span_str(REQ("x", "{}")), b, PATIENCE_MS, err);
    client_delivered(ends[0]);
    close(ends[0]);
    expect_ended(pid);
    return result;
}

static const struct {
    const char *answer, *message;
} strange[] = {
    {"", "the connection was closed without an answer"},
    {"HTTP/1.1 200 OK\r\nContent-Le", "the connection was closed without an answer"},
    {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfour", "the connection was closed without an answer"},
    {"HTTP/1.1 200 OK\r\n\r\nbody", "the answer is no HTTP response of ours"},
    {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "the answer is no HTTP response of ours"},
    {"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n", "the answer is no HTTP response of ours"},
    {"SSH-2.0-OpenSSH\r\n\r\n", "the answer is no HTTP response of ours"},
    {"HTTP/1.1 100 Continue\r\n\r\n", "the answer is no HTTP response of ours"},
    {"HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\n\r\nxx",
     "the request was refused: HTTP 413 Content Too Large"},
};

static void names_what_is_wrong(void **state)
{
    (void)state;
    for (int slowly = 0; slowly < 2; slowly++) {
        for (size_t i = 0; i < sizeof strange / sizeof *strange; i++) {
            struct err err = {0, ""};
            struct buf b BUF_AUTO = BUF_INIT;
            assert_int_equal(canned(strange[i].answer, slowly, &b, &err), -1);
            assert_int_equal(err.code, ERR_INTERNAL);
            assert_string_equal(err.msg, strange[i].message);
        }
        struct buf b BUF_AUTO = BUF_INIT;
        assert_int_equal(canned("HTTP/1.1 200 OK\r\nX-Content-Length: 7\r\ncontent-length: 5\r\n\r\nhello",
                                slowly, &b, NULL),
                         0);
        assert_string_equal(buf_str(&b), "hello");
    }
    struct buf endless BUF_AUTO = BUF_INIT, b BUF_AUTO = BUF_INIT;
    struct err err;
    buf_adds(&endless, "HTTP/1.1 200 OK\r\n");
    for (int i = 0; i < 10000; i++)
        buf_adds(&endless, "X: yyyyyyyyyyyyyyyyy\r\n");
    assert_int_equal(canned(endless.data, false, &b, &err), -1);
    assert_string_equal(err.msg, "the answer is no HTTP response of ours");
}

/* A server that ends while the call is open. */
static void takes_no_answer_that_does_not_fit(void **state)
{
    struct rlimit limit, low;
    struct buf b BUF_AUTO = BUF_INIT;
    struct err err;
    (void)state;
    if (SANITIZED) /* which takes terabytes of addresses for itself */
        skip();
    assert_int_equal(getrlimit(RLIMIT_AS, &limit), 0);
    low = (struct rlimit){256u << 20, limit.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_AS, &low), 0);
    int result = canned("HTTP/1.1 200 OK\r\nContent-Length: 250000000\r\n\r\nx", false, &b, &err);
    assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
    assert_int_equal(result, -1);
    assert_int_equal(err.code, ERR_TOOL);
    assert_string_equal(err.msg, "the answer has 238 MiB, for which there is not the memory");
}

static void notices_the_servers_end(void **state)
{
    (void)state;
    struct err err;
    struct buf b BUF_AUTO = BUF_INIT;
    int fd = dial();
    pid_t killer = fork();
    assert_true(killer >= 0);
    if (killer == 0) {
        usleep(200000);
        _exit(kill(served.pid, SIGKILL) < 0);
    }
    assert_int_equal(client_call(fd, span_str(REQ("wait", "{}")), &b, -1, &err), -1);
    assert_string_equal(err.msg, "the connection was closed without an answer");
    close(fd);
    expect_ended(killer);
    assert_int_equal(waitpid(served.pid, NULL, 0), served.pid);
    served.pid = 0;
}

/* ---- what a response says ---- */

static void reads_responses(void **state)
{
    (void)state;
    struct span result;
    struct err err;
    assert_int_equal(client_result(span_str("{\"id\":1,\"result\": [ 1e3 ] }"), &result, &err), 0);
    assert_true(span_is(result, "[ 1e3 ]"));
    assert_int_equal(client_result(span_str("{\"result\":null}"), &result, &err), 0);
    assert_true(span_is(result, "null"));
    assert_int_equal(
        client_result(span_str("{\"error\":{\"code\":-32099,\"message\":\"n\\u00e9 %s\"}}"), &result, &err),
        -1);
    assert_int_equal(err.code, ERR_TOOL);
    assert_string_equal(err.msg, "n\xC3\xA9 %s");
    static const char *const odd[] = {"",
                                      "5",
                                      "{}",
                                      "[]",
                                      "{\"result\":1",
                                      "{\"error\":5}",
                                      "{\"error\":{\"code\":\"x\",\"message\":\"\"}}",
                                      "{\"error\":{\"code\":1}}",
                                      "{\"error\":{\"code\":99999999999,\"message\":\"m\"}}"};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        err.code = 0;
        assert_int_equal(client_result(span_str(odd[i]), &result, &err), -1);
        assert_int_equal(err.code, ERR_INTERNAL);
    }
}

/* ---- on a loop ---- */

static struct {
    struct loop *loop;
    struct client *client;
    int done;
    char text[ERR_MSG_MAX];
} seen;

static void on_done(void *arg, struct span answer, const struct err *err)
{
    assert_ptr_equal(arg, &seen);
    seen.done++;
    if (err)
        snprintf(seen.text, sizeof seen.text, "%s", err->msg);
    else
        snprintf(seen.text, sizeof seen.text, "%.*s", (int)(answer.n < 400 ? answer.n : 400), answer.s);
    loop_stop(seen.loop, 0);
}

static void run_client(const char *request, int timeout_ms)
{
    seen.done = 0;
    seen.loop = loop_new(NULL);
    seen.client = client_start(seen.loop, dial(), span_str(request), timeout_ms, on_done, &seen);
    assert_int_equal(seen.done, 0);
    loop_run(seen.loop);
    assert_int_equal(seen.done, 1);
}

static void calls_on_a_loop(void **state)
{
    (void)state;
    run_client(REQ("late", "{\"a\":1}"), PATIENCE_MS);
    assert_string_equal(seen.text, OK("{\"a\":1}"));
    client_end(seen.client, true);
    loop_free(seen.loop);
    expect_state(served.path, "open 0 pending 0 abandoned 0 delivered 1 lost 0");

    run_client(REQ("size", "{\"n\":5000000}"), PATIENCE_MS);
    assert_memory_equal(seen.text, OK("\"xxx"), 37);
    client_end(seen.client, false);
    loop_free(seen.loop);
    expect_state(served.path, "open 0 pending 0 abandoned 0 delivered 1 lost 1");

    run_client(REQ("wait", "{}"), 50);
    assert_string_equal(seen.text, "no answer within 50 ms");
    client_end(seen.client, false);
    loop_free(seen.loop);
    expect_state(served.path, "open 0 pending 0 abandoned 1 delivered 1 lost 1");
}

static struct {
    struct loop *loop;
    struct client *clients[2];
    struct exchange *turn;
    size_t lengths[2];
    int done;
} pair;

static void on_pair_done(void *arg, struct span answer, const struct err *err)
{
    size_t which = arg == &pair.lengths[1];
    assert_null(err);
    pair.lengths[which] = answer.n;
    assert_null(pair.turn); /* it is free for the other */
    if (++pair.done == 1)
        client_pause(pair.clients[!which], false);
    else
        loop_stop(pair.loop, 0);
}

static void long_answers_are_read_one_after_the_other(void **state)
{
    (void)state;
    pair.loop = loop_new(NULL);
    pair.turn = NULL;
    pair.done = 0;
    for (size_t i = 0; i < 2; i++) {
        pair.clients[i] = client_start(pair.loop, dial(), span_str(REQ("size", "{\"n\":3000000}")),
                                       PATIENCE_MS, on_pair_done, &pair.lengths[i]);
        client_take_turns(pair.clients[i], &pair.turn);
    }
    loop_run(pair.loop);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(pair.lengths[i], 3000000 + strlen(OK("\"\"")));
        client_end(pair.clients[i], true);
    }
    loop_free(pair.loop);
    expect_state(served.path, "open 0 pending 0 abandoned 0 delivered 2 lost 0");
}

static void stop_loop(void *arg)
{
    loop_stop(arg, 0);
}

/* Nothing is read until it goes on; and who gives up leaves the turn to the others. */
static void a_client_may_pause_and_give_up(void **state)
{
    (void)state;
    seen.done = 0;
    seen.loop = loop_new(NULL);
    struct exchange *turn = NULL;
    struct client *c =
        client_start(seen.loop, dial(), span_str(REQ("size", "{\"n\":60000000}")), -1, on_done, &seen);
    client_take_turns(c, &turn);
    long long until = now_ms() + PATIENCE_MS;
    while (!turn) { /* client.c sets it */
        struct loop_source *timer = loop_timer(seen.loop, 1, stop_loop, seen.loop);
        loop_run(seen.loop);
        loop_remove(timer);
        assert_true(now_ms() < until);
    }
    client_pause(c, true);
    loop_timer(seen.loop, 50, stop_loop, seen.loop);
    loop_run(seen.loop);
    assert_int_equal(seen.done, 0);
    client_end(c, false);
    assert_null(turn);
    loop_free(seen.loop);
}

/* ---- forwarding ---- */

static struct {
    char path[80];
    pid_t pid;
} front; /* forwards to `served` */

static int front_start(void **state)
{
    if (served_start(state) < 0)
        return -1;
    snprintf(front.path, sizeof front.path, "%s/front", served.dir);
    front.pid = serve_at(front.path, served.path);
    return 0;
}

static int front_stop(void **state)
{
    quit(front.path, front.pid);
    unlink(front.path);
    return served_stop(state);
}

#define NOTHING "open 0 pending 0 abandoned 0 delivered 0 lost 0"

static void forwards_answers_and_delivery(void **state)
{
    (void)state;
    struct buf b BUF_AUTO = BUF_INIT;
    int fd = connect_to(front.path);
    assert_int_equal(client_call(fd, span_str(REQ("forward", "{\"a\":9007199254740993}")), &b, -1, NULL), 0);
    assert_string_equal(buf_str(&b), OK("{\"a\":9007199254740993}"));
    expect_state(served.path, NOTHING);
    client_delivered(fd);
    close(fd);
    expect_state(served.path, "open 0 pending 0 abandoned 0 delivered 1 lost 0");

    fd = connect_to(front.path);
    buf_truncate(&b, 0);
    assert_int_equal(client_call(fd, span_str(REQ("forward", "{}")), &b, -1, NULL), 0);
    close(fd);
    expect_state(served.path, "open 0 pending 0 abandoned 0 delivered 1 lost 1");
    expect_state(front.path, NOTHING);
}

static void forwards_batches(void **state)
{
    (void)state;
    struct buf b BUF_AUTO = BUF_INIT;
    int fd = connect_to(front.path);
    assert_int_equal(
        client_call(
            fd,
            span_str("[" REQ("forward", "{\"a\":1}") ", {\"jsonrpc\":\"2.0\",\"method\":\"forward\"} ," REQ(
                "forward", "{\"a\":2}") "]"),
            &b, -1, NULL),
        0);
    assert_string_equal(buf_str(&b), "[" OK("{\"a\":1}") "," OK("{\"a\":2}") "]");
    client_delivered(fd);
    close(fd);
    expect_state(served.path,
                 "open 0 pending 0 abandoned 0 delivered 2 lost 1"); /* lost: the notification's answer */
}

static void forwards_abandonment(void **state)
{
    (void)state;
    int fd = connect_to(front.path);
    say_request(fd, "1", "forward", "{\"wait\":1}");
    expect_state(served.path, "open 1 pending 1 abandoned 0 delivered 0 lost 0");
    close(fd);
    expect_state(served.path, "open 0 pending 0 abandoned 1 delivered 0 lost 0");
    expect_state(front.path, NOTHING);
}

static void tells_of_the_others_end(void **state)
{
    (void)state;
    int fd = connect_to(front.path);
    say_request(fd, "1", "forward", "{\"wait\":1}");
    expect_state(served.path, "open 1 pending 1 abandoned 0 delivered 0 lost 0");
    kill(served.pid, SIGKILL);
    assert_int_equal(waitpid(served.pid, NULL, 0), served.pid);
    served.pid = 0;
    struct buf b BUF_AUTO = BUF_INIT;
    struct span result;
    struct err err;
    assert_int_equal(hear_answer(fd, &b), 200);
    assert_int_equal(client_result(span_of(&b), &result, &err), -1);
    assert_int_equal(err.code, ERR_TOOL);
    assert_non_null(strstr(err.msg, "ended while the call was open"));
    close(fd);
}

#define SERVED(test) cmocka_unit_test_setup_teardown(test, served_start, served_stop)
#define FORWARDED(test) cmocka_unit_test_setup_teardown(test, front_start, front_stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SERVED(calls),
        SERVED(says_when_an_answer_was_lost),
        SERVED(takes_answers_of_any_size),
        SERVED(sends_large_requests),
        SERVED(gets_nothing_for_notifications),
        SERVED(gives_up_in_time),
        SERVED(signals_end_no_call),
        SERVED(notices_the_servers_end),
        cmocka_unit_test(names_what_is_wrong),
        cmocka_unit_test(takes_no_answer_that_does_not_fit),
        cmocka_unit_test(reads_responses),
        SERVED(calls_on_a_loop),
        SERVED(long_answers_are_read_one_after_the_other),
        SERVED(a_client_may_pause_and_give_up),
        FORWARDED(forwards_answers_and_delivery),
        FORWARDED(forwards_batches),
        FORWARDED(forwards_abandonment),
        FORWARDED(tells_of_the_others_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
