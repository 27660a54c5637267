/* The DevTools protocol against a browser of two pipes. */
#include "io.h"
#include "mem.h"
#include "support.h"
#include "tools/web_browser/cdp.h"

static struct loop *loop;
static struct cdp *cdp;
static int to_us, from_us; /* the browser's ends */
static struct buf seen;    /* what has come, a line each */
static int waited_for;

static void note(const char *kind, const char *word, struct span text)
{
    buf_addf(&seen, "%s %s|%.*s\n", kind, word, (int)(text.n < 100 ? text.n : 100), text.s ? text.s : "");
    if (--waited_for == 0)
        loop_stop(loop, 0);
}

static void answered(void *arg, struct span result, const struct err *err)
{
    note(arg, err ? err->msg : "", result);
}

static void happened(void *arg, const char *session, const char *method, struct span params)
{
    char text[300];
    (void)arg;
    snprintf(text, sizeof text, "[%s] %s", session, method);
    note("event", text, params);
}

static void hung_up(void *arg)
{
    (void)arg;
    note("hung up", "", (struct span){0});
}

static const struct cdp_events events = {.event = happened, .hung_up = hung_up};

static void give_up(void *arg)
{
    (void)arg;
    buf_adds(&seen, "timeout\n");
    loop_stop(loop, 1);
}

static void wait_for(int n)
{
    struct loop_source *timer = loop_timer(loop, PATIENCE_MS, give_up, NULL);
    waited_for = n;
    loop_run(loop);
    loop_remove(timer);
}

static void expect(const char *text)
{
    assert_string_equal(buf_str(&seen), text);
    buf_release(&seen);
}

static void say(const char *text)
{
    assert_int_equal(io_write_all(to_us, text, strlen(text) + 1), 0);
}

static void call(const char *session, const char *params, const char *name)
{
    struct span text = {params, params ? strlen(params) : 0};
    cdp_call(cdp, session, "A.b", text, answered, (void *)(uintptr_t)name);
}

static int begin(void **state)
{
    int in[2], out[2];
    (void)state;
    if (pipe(in) < 0 || pipe(out) < 0)
        return -1;
    io_set_nonblock(in[0], true);
    io_set_nonblock(out[1], true);
    to_us = in[1];
    from_us = out[0];
    buf_init(&seen, BUF_NO_MAX);
    loop = loop_new(NULL);
    cdp = cdp_new(loop, in[0], out[1], &events, NULL);
    return 0;
}

static int end(void **state)
{
    struct err why = {.code = ERR_TOOL};
    (void)state;
    cdp_close(cdp, &why);
    free(cdp);
    io_close(&to_us);
    io_close(&from_us);
    loop_free(loop);
    return 0;
}

static void calls_are_answered_by_number(void **state)
{
    (void)state;
    char sent[500];
    call("", NULL, "one");
    call("S\"1", "{\"x\":1}", "two");
    say("{\"id\":2,\"sessionId\":\"S\\\"1\",\"result\":{\"b\":2}}");
    say("{\"id\":1,\"error\":{\"code\":-32000,\"message\":\"no\",\"data\":\"why\"}}");
    say("{\"id\":2,\"result\":{}}"); /* a second time: nobody's */
    say("{\"method\":\"P.q\",\"sessionId\":\"S\\u0041\",\"params\":{\"c\":3}}");
    say("{\"method\":\"P.r\"}");
    wait_for(4);
    expect("two |{\"b\":2}\none no: why|\nevent [SA] P.q|{\"c\":3}\nevent [] P.r|{}\n");
    ssize_t n = read(from_us, sent, sizeof sent);
    static const char expected[] =
        "{\"id\":1,\"method\":\"A.b\"}\0"
        "{\"id\":2,\"method\":\"A.b\",\"params\":{\"x\":1},\"sessionId\":\"S\\\"1\"}";
    assert_int_equal(n, sizeof expected);
    assert_memory_equal(sent, expected, sizeof expected);
}

static void messages_come_in_pieces(void **state)
{
    (void)state;
    static const char text[] = "{\"method\":\"A.a\"}\0{\"method\":\"B.b\"}\0{\"method\":\"C.c\"}";
    for (size_t i = 0; i < sizeof text; i++) {
        assert_int_equal(write(to_us, text + i, 1), 1);
        if (i == 17 || i == 34 || i == sizeof text - 1)
            continue;
        if (i % 5 == 0) { /* the loop reads what is there by then */
            struct loop_source *timer = loop_timer(loop, 1, give_up, NULL);
            waited_for = -1;
            loop_run(loop);
            loop_remove(timer);
        }
    }
    if (!strstr(buf_str(&seen), "C.c"))
        wait_for(1);
    for (char *at; (at = strstr(seen.data, "timeout\n"));)
        buf_replace(&seen, (size_t)(at - seen.data), 8, "", 0);
    expect("event [] A.a|{}\nevent [] B.b|{}\nevent [] C.c|{}\n");
}

static void what_is_no_message_is_passed_over(void **state)
{
    (void)state;
    call("", NULL, "one");
    say("");
    say("{\"method\":\"A.a\"");
    say("[1]");
    say("{\"method\":7}");
    say("{\"id\":99,\"result\":{}}");
    say("{\"id\":1}");
    wait_for(1);
    expect("one the browser gave no result|\n");
}

static void who_is_forgotten_hears_nothing(void **state)
{
    (void)state;
    static char one[] = "one", two[] = "two";
    call("", NULL, one);
    call("", NULL, two);
    cdp_forget(cdp, one);
    say("{\"id\":1,\"result\":{}}");
    say("{\"id\":2,\"result\":{}}");
    wait_for(1);
    expect("two |{}\n");
}

static void a_session_that_is_gone_fails_its_calls(void **state)
{
    (void)state;
    struct err err = {.code = ERR_TOOL, .msg = "gone"};
    call("S", NULL, "one");
    call("T", NULL, "two");
    call("S", NULL, "three");
    cdp_fail(cdp, "S", &err);
    expect("one gone|\nthree gone|\n");
    call("T", NULL, "four");
    say("{\"id\":2,\"result\":{}}");
    say("{\"id\":4,\"result\":{}}");
    wait_for(2);
    expect("two |{}\nfour |{}\n");
}

static void the_end_of_the_browser_fails_all(void **state)
{
    (void)state;
    call("", NULL, "one");
    call("S", NULL, "two");
    io_close(&to_us);
    wait_for(3);
    expect("hung up |\none the browser has ended|\ntwo the browser has ended|\n");
    call("S", NULL, "three");
    assert_string_equal(buf_str(&seen), "");
    wait_for(1);
    expect("three the browser has ended|\n");
}

/* Longer than a pipe holds, both ways, so that each side has to wait for the other. */
static void long_messages(void **state)
{
    (void)state;
    struct buf text BUF_AUTO = BUF_INIT;
    size_t n = (size_t)40 << 20;
    buf_adds(&text, "{\"x\":\"");
    for (size_t i = 0; i < n / 64; i++)
        buf_adds(&text, "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde ");
    buf_adds(&text, "\"}");
    pid_t pid = fork();
    if (pid == 0) { /* the browser: sends back what it gets, under the same number */
        struct buf got BUF_AUTO = BUF_INIT;
        char area[65536];
        for (ssize_t r; got.len == 0 || got.data[got.len - 1] != '\0'; buf_add(&got, area, (size_t)r))
            if ((r = read(from_us, area, sizeof area)) <= 0)
                _exit(1);
        char *params = strstr(got.data, "{\"x\"");
        got.data[got.len - 2] = '\0';
        say("{\"method\":\"A.a\"}");
        if (io_write_all(to_us, "{\"id\":1,\"result\":", 17) < 0 ||
            io_write_all(to_us, params, strlen(params)) < 0)
            _exit(1);
        say("}");
        _exit(0);
    }
    io_close(&to_us);
    cdp_call(cdp, "", "A.b", span_of(&text), answered, (void *)(uintptr_t) "one");
    wait_for(2);
    buf_truncate(&text, 100);
    buf_adds(&text, "\n");
    if (strstr(buf_str(&seen), "hung up"))
        buf_truncate(&seen, seen.len - strlen("hung up |\n"));
    assert_true(strncmp(buf_str(&seen), "event [] A.a|{}\none |", 21) == 0);
    assert_string_equal(seen.data + 21, text.data);
    buf_release(&seen);
    waitpid(pid, NULL, 0);
}

static void a_message_without_end_fails_its_call(void **state)
{
    (void)state;
    pid_t pid = fork();
    if (pid == 0) {
        static char filler[1 << 20];
        memset(filler, 'x', sizeof filler);
        if (io_write_all(to_us, "{\"id\":1,\"result\":\"", 18) < 0)
            _exit(1);
        for (size_t i = 0; i < (CDP_MESSAGE_MAX >> 20) + 3; i++)
            if (io_write_all(to_us, filler, sizeof filler) < 0)
                _exit(1);
        say("\"}");
        say("{\"method\":\"A.a\"}");
        _exit(0);
    }
    io_close(&to_us);
    call("", NULL, "one");
    wait_for(2);
    assert_ptr_equal(strstr(buf_str(&seen), "one the browser's answer is longer than 256 MiB|\n"
                                            "event [] A.a|{}\n"),
                     seen.data);
    buf_release(&seen);
    waitpid(pid, NULL, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(calls_are_answered_by_number),
        TEST(messages_come_in_pieces),
        TEST(what_is_no_message_is_passed_over),
        TEST(who_is_forgotten_hears_nothing),
        TEST(a_session_that_is_gone_fails_its_calls),
        TEST(the_end_of_the_browser_fails_all),
        TEST(long_messages),
        TEST(a_message_without_end_fails_its_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
