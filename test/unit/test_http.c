#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <sys/resource.h>
#include <time.h>

#include "http_parse.h"
#include "served.h"
#include "support.h"

/* ---- the parser ---- */

static const struct {
    const char *text;
    const char *body;
    bool keep_alive;
} good[] = {
    {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello", "hello", true},
    {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", "", true},
    {"POST / HTTP/1.1\r\nHost:\r\ncontent-length:5  \r\n\r\nhello", "hello", true},
    {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0000000000000000000000000000000000005\r\n\r\nhello",
     "hello", true},
    {"\r\n\r\nPOST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx", "x", true},
    {"POST http://localhost/ HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx", "x", true},
    {"POST HTTP://[::1]:80 HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx", "x", true},
    {"POST / HTTP/1.1\r\nHost: x\r\nConnection: foo, Close\r\nContent-Length: 1\r\n\r\nx", "x", false},
    {"POST / HTTP/1.1\r\nHost: x\r\nConnection: closed\r\nContent-Length: 1\r\n\r\nx", "x", true},
    {"POST / HTTP/1.0\r\nContent-Length: 1\r\n\r\nx", "x", false},
    {"POST / HTTP/1.9\r\nHost: x\r\nContent-Length: 1\r\n\r\nx", "x", true},
    {"POST / HTTP/1.1\r\nHost: x\r\nX-Odd: a\tb \xFF\r\n!#$%&'*+-.^_`|~1: \r\nContent-Length: 1\r\n\r\nx",
     "x", true},
    {"POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-Continue\r\nContent-Length: 1\r\n\r\nx", "x", true},
    {"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: Chunked\r\n\r\n0\r\n\r\n", "", true},
    {"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n00a\r\n, "
     "world!\r\n\r\n0\r\n\r\n",
     "hello, world!\r\n", true},
    {"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1;a=b;c=\"d\"\r\nx\r\nA "
     "\t;x\r\n0123456789\r\n0;end\r\nX: "
     "y\r\nZ:\r\n\r\n",
     "x0123456789", true},
};

static void parses(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        const char *text = good[i].text;
        size_t n = strlen(text);
        /* In two pieces, cut at every place; the last cut is none. */
        for (size_t cut = 0; cut <= n; cut++) {
            struct http_parser p;
            http_parser_init(&p);
            assert_int_equal(http_parse(&p, text, cut), cut);
            char *rest = mem_dup(text + cut, n - cut);
            assert_int_equal(http_parse(&p, rest, n - cut), n - cut);
            free(rest);
            assert_int_equal(p.state, HTTP_COMPLETE);
            assert_string_equal(buf_str(&p.body), good[i].body);
            assert_int_equal(p.keep_alive, good[i].keep_alive);
            http_parser_release(&p);
        }
    }
}

static void leaves_the_next_request(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        struct buf two BUF_AUTO = BUF_INIT;
        buf_adds(&two, good[i].text);
        size_t n = two.len;
        buf_adds(&two, "POST / HTTP/1.1\r\n");
        struct http_parser p;
        http_parser_init(&p);
        assert_int_equal(http_parse(&p, two.data, two.len), n);
        assert_int_equal(p.state, HTTP_COMPLETE);
        http_parser_release(&p);
    }
}

#define HEAD "POST / HTTP/1.1\r\nHost: x\r\n"
#define CHUNKED HEAD "Transfer-Encoding: chunked\r\n\r\n"

static const struct {
    const char *text;
    int status;
} bad[] = {
    {"GET / HTTP/1.1\r\n", 405},
    {"post / HTTP/1.1\r\n", 405},
    {"POSTS / HTTP/1.1\r\n", 405},
    {"GET /x HTTP/1.1\r\n", 404},
    {"POST /x HTTP/1.1\r\n", 404},
    {"POST /?a HTTP/1.1\r\n", 404},
    {"POST * HTTP/1.1\r\n", 404},
    {"POST http:/// HTTP/1.1\r\n", 404},
    {"POST http://a/b HTTP/1.1\r\n", 404},
    {"POST http://a? HTTP/1.1\r\n", 404},
    {"POST / HTTP/2.0\r\n", 505},
    {"POST / HTTP/0.9\r\n", 505},
    {"POST / HTTP/1.1 \r\n", 400},
    {"POST / HTTP/1.10\r\n", 400},
    {"POST / http/1.1\r\n", 400},
    {"POST / HTTP/1,1\r\n", 400},
    {"POST / HTTP/\r\n", 400},
    {"POST /\r\n", 400},
    {"POST\r\n", 400},
    {"POST  / HTTP/1.1\r\n", 400},
    {"POST /  HTTP/1.1\r\n", 400},
    {" POST / HTTP/1.1\r\n", 400},
    {"P(ST / HTTP/1.1\r\n", 400},
    {"POST / HTTP/1.1\n", 400},
    {"\n", 400},
    {"{\"jsonrpc\":\"2.0\"}\n", 400},
    {"POST /\x01 HTTP/1.1\r\n", 400},
    {"POST / HTTP/1.1\r\r\n", 400},
    {"POST / HTTP/1.1\r\nContent-Length: 1\r\n\r\n", 400}, /* no host */
    {HEAD "Host: y\r\n", 400},
    {HEAD "\r\n", 411},
    {HEAD "Content-Length: 5\r\nContent-Length: 5\r\n", 400},
    {HEAD "Content-Length: 5, 5\r\n", 400},
    {HEAD "Content-Length: -1\r\n", 400},
    {HEAD "Content-Length: +1\r\n", 400},
    {HEAD "Content-Length: 0x1\r\n", 400},
    {HEAD "Content-Length:\r\n", 400},
    {HEAD "Content-Length: 134217729\r\n", 413},
    {HEAD "Content-Length: 99999999999999999999999999999999999999\r\n", 413},
    {HEAD "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
    {HEAD "Transfer-Encoding: gzip\r\n", 501},
    {HEAD "Transfer-Encoding: gzip, chunked\r\n", 501},
    {HEAD "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", 400},
    {"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n", 400},
    {HEAD "Expect: more\r\n", 417},
    {HEAD "No colon\r\n", 400},
    {HEAD "Space : x\r\n", 400},
    {HEAD ": x\r\n", 400},
    {HEAD " folded\r\n", 400},
    {HEAD "X: a\x01z\r\n", 400},
    {HEAD "X: a\x7fz\r\n", 400},
    {HEAD "X: a\rb\r\n", 400},
    {HEAD "X: a\n", 400},
    {CHUNKED "\r\n", 400},
    {CHUNKED "g\r\n", 400},
    {CHUNKED "-1\r\n", 400},
    {CHUNKED "0x1\r\n", 400},
    {CHUNKED "1 2\r\n", 400},
    {CHUNKED "1\n", 400},
    {CHUNKED "1\r\nxx\r\n", 400},
    {CHUNKED "1\r\nx\n", 400},
    {CHUNKED "8000001\r\n", 413},
    {CHUNKED "1\r\nx\r\n8000000\r\n", 413},
    {CHUNKED "ffffffffffffffffffffffffffffffff1\r\n", 413},
    {CHUNKED "0\r\nNo colon\r\n", 400},
};

static void refuses(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        size_t n = strlen(bad[i].text);
        for (size_t cut = 0; cut <= n; cut++) {
            struct http_parser p;
            http_parser_init(&p);
            size_t taken = http_parse(&p, bad[i].text, cut);
            assert_int_equal(taken, cut);
            if (p.state == HTTP_REFUSED && cut < n)
                fail_msg("refused too early: %s", bad[i].text);
            http_parse(&p, bad[i].text + cut, n - cut);
            if (p.state != HTTP_REFUSED || p.status != bad[i].status)
                fail_msg("%s: %d, not %d", bad[i].text, p.status, bad[i].status);
            assert_int_equal(http_parse(&p, "x", 1), 0);
            http_parser_release(&p);
        }
    }
    struct http_parser p;
    http_parser_init(&p);
    http_parse(&p, HEAD "X: a\0b\r\n", sizeof HEAD + 8);
    assert_int_equal(p.status, 400);
    http_parser_release(&p);
}

/* Feeds `piece` until the parser refuses or `most` bytes have gone in. */
static size_t feed_endlessly(struct http_parser *p, const char *piece, size_t most)
{
    size_t total = 0;
    while (p->state != HTTP_REFUSED && total < most)
        total += http_parse(p, piece, strlen(piece));
    return total;
}

static void takes_any_method_and_target(void **state)
{
    static const struct {
        const char *text, *method, *target;
        int status;
    } any[] = {
        {"GET /a?b=%20 HTTP/1.1\r\nHost: x\r\n\r\n", "GET", "/a?b=%20", 0},
        {"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", "OPTIONS", "*", 0},
        {"POST http://h/p HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", "POST", "/p", 0},
        {"DELETE http://h HTTP/1.0\r\n\r\n", "DELETE", "/", 0},
        {"PROPFIND / HTTP/1.1\r\nHost: x\r\n\r\n", NULL, NULL, 501},
        {"GET / HTTP/1.1\r\n\r\n", NULL, NULL, 400},
    };
    (void)state;
    for (size_t i = 0; i < sizeof any / sizeof *any; i++) {
        struct http_parser p;
        http_parser_init_any(&p);
        http_parse(&p, any[i].text, strlen(any[i].text));
        assert_int_equal(p.state, any[i].status ? HTTP_REFUSED : HTTP_COMPLETE);
        assert_int_equal(p.status, any[i].status);
        if (any[i].method) {
            assert_string_equal(p.method, any[i].method);
            assert_string_equal(buf_str(&p.target), any[i].target);
            assert_int_equal(p.body.len, 0);
        }
        http_parser_release(&p);
    }
}

static void keeps_the_fields(void **state)
{
    static const char text[] = "GET / HTTP/1.1\r\nHost: x\r\nX-A:  b c \r\nx-a: d\r\nEmpty:\r\n\r\n";
    static const char *const expected[] = {"host", "x", "x-a", "b c", "x-a", "d", "empty", ""};
    const char *name = NULL, *value;
    struct http_parser p;
    size_t n = 0;
    (void)state;
    http_parser_init_any(&p);
    assert_false(http_next_field(&p, &name, &value));
    http_parse(&p, text, sizeof text - 1);
    for (; http_next_field(&p, &name, &value); n += 2) {
        assert_string_equal(name, expected[n]);
        assert_string_equal(value, expected[n + 1]);
    }
    assert_int_equal(n, 8);
    assert_string_equal(http_field(&p, "x-a"), "b c");
    assert_string_equal(http_field(&p, "b c"), "");
    http_parser_release(&p);
}

static void bounds_the_head(void **state)
{
    (void)state;
    static const struct {
        const char *start, *piece;
    } endless[] = {
        {"", "a"},
        {"", "\r\n"},
        {HEAD, "b"},
        {HEAD, "X: y\r\n"},
        {CHUNKED, "0"},
        {CHUNKED "1;", "x"},
        {CHUNKED "0\r\n", "X: y\r\n"},
        {CHUNKED "1\r\nx", "y"},
    };
    for (size_t i = 0; i < sizeof endless / sizeof *endless; i++) {
        struct http_parser p;
        http_parser_init(&p);
        http_parse(&p, endless[i].start, strlen(endless[i].start));
        assert_true(feed_endlessly(&p, endless[i].piece, 100000) <= HTTP_HEAD_MAX);
        assert_int_equal(p.status, 431);
        assert_true(p.reading.line.cap <= 2 * HTTP_HEAD_MAX + 2);
        http_parser_release(&p);
    }
}

static void waits_only_after_the_head(void **state)
{
    (void)state;
    struct http_parser p;
    http_parser_init(&p);
    static const char head[] = HEAD "Expect: 100-continue\r\nContent-Length: 5\r\n";
    http_parse(&p, head, strlen(head));
    assert_false(p.expects);
    http_parse(&p, "\r\n", 2);
    assert_true(p.expects);
    http_parser_release(&p);
    http_parser_init(&p);
    static const char empty[] = HEAD "Expect: 100-continue\r\nContent-Length: 0\r\n\r\n";
    http_parse(&p, empty, strlen(empty));
    assert_false(p.expects);
    http_parser_release(&p);
}

/* ---- the server ---- */

#define ECHO1 "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}"
#define ECHO2 "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"a\":2}}"
#define ECHO3 "{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{}}"

static void keeps_connections(void **state)
{
    (void)state;
    int fd = dial();
    for (int i = 0; i < 3; i++) {
        say_request(fd, "1", "echo", NULL);
        expect_answer(fd, ECHO1);
    }
    close(fd);
}

static void takes_bytes_one_by_one(void **state)
{
    (void)state;
    int fd = dial();
    struct buf b BUF_AUTO = BUF_INIT;
    request(&b, "1", "echo", NULL);
    for (size_t i = 0; i < b.len; i++) {
        say(fd, b.data + i, 1);
        usleep(200);
    }
    expect_answer(fd, ECHO1);
    close(fd);
}

static void answers_in_order(void **state)
{
    (void)state;
    int fd = dial();
    struct buf b BUF_AUTO = BUF_INIT;
    request(&b, "1", "echo", NULL);
    request(&b, "2", "wait", NULL);
    request(&b, "3", "echo", NULL);
    request(&b, "3", "echo", NULL);
    say(fd, b.data, b.len);
    expect_answer(fd, ECHO1);
    expect_state(served.path, "open 1 pending 1 abandoned 0 delivered 0 lost 0");
    int other = dial();
    say_request(other, "1", "go", "{\"a\":2}");
    expect_answer(fd, ECHO2);
    expect_answer(fd, ECHO3);
    expect_answer(fd, ECHO3);
    close(fd);
    close(other);
}

/* A client that sends on while its call is open is not read without end, and its end is noticed. */
static void bounds_what_is_sent_ahead(void **state)
{
    (void)state;
    int fd = dial();
    say_request(fd, "1", "wait", NULL);
    fcntl(fd, F_SETFL, O_NONBLOCK);
    char junk[4096];
    memset(junk, 'x', sizeof junk);
    size_t total = 0;
    for (int idle = 0; idle < 30;) {
        ssize_t n = send(fd, junk, sizeof junk, MSG_NOSIGNAL);
        if (n > 0)
            total += (size_t)n;
        idle = n > 0 ? 0 : idle + 1;
        if (n < 0)
            usleep(10000);
        assert_true(total < 8u << 20);
    }
    close(fd);
    expect_state(served.path, "open 0 pending 0 abandoned 1 delivered 0 lost 0");
}

static void says_nothing_to_notifications(void **state)
{
    (void)state;
    int fd = dial();
    struct buf b BUF_AUTO = BUF_INIT, answer BUF_AUTO = BUF_INIT;
    post(&b, "{\"jsonrpc\":\"2.0\",\"method\":\"echo\"}");
    say(fd, b.data, b.len);
    assert_int_equal(hear_answer(fd, &answer), 204);
    say_request(fd, "1", "echo", NULL);
    expect_answer(fd, ECHO1);
    close(fd);
}

static void refuses_and_closes(void **state)
{
    (void)state;
    static const struct {
        const char *text, *answer;
    } cases[] = {
        {"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
         "HTTP/1.1 405 Method Not Allowed\r\nAllow: POST\r\nContent-Type: text/plain\r\n"
         "Content-Length: 19\r\nConnection: close\r\n\r\nMethod Not Allowed\n"},
        {"POST /rpc HTTP/1.1\r\nHost: x\r\n\r\n",
         "HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\nContent-Length: 10\r\n"
         "Connection: close\r\n\r\nNot Found\n"},
        {"nonsense\r\n", "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: 12\r\n"
                         "Connection: close\r\n\r\nBad Request\n"},
        {HEAD "Content-Length: 999999999999\r\n\r\n",
         "HTTP/1.1 413 Content Too Large\r\nContent-Type: text/plain\r\n"
         "Content-Length: 18\r\nConnection: close\r\n\r\nContent Too Large\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int fd = dial();
        struct buf in BUF_AUTO = BUF_INIT;
        say(fd, cases[i].text, strlen(cases[i].text));
        hear(fd, &in, SIZE_MAX);
        assert_string_equal(buf_str(&in), cases[i].answer);
        close(fd);
    }
}

/* The refusal must reach who is still sending his body. */
static void refuses_while_the_body_comes(void **state)
{
    (void)state;
    int fd = dial();
    static const char head[] = HEAD "Content-Length: 200000000\r\n\r\n";
    say(fd, head, strlen(head));
    char *junk = mem_zalloc(4u << 20);
    for (int i = 0; i < 4; i++)
        say(fd, junk, 4u << 20);
    free(junk);
    struct buf in BUF_AUTO = BUF_INIT;
    hear(fd, &in, SIZE_MAX);
    assert_memory_equal(buf_str(&in), "HTTP/1.1 413 ", 13);
    close(fd);
}

static void closes_when_asked(void **state)
{
    (void)state;
    static const char *const heads[] = {
        "POST / HTTP/1.0\r\nContent-Length: 2\r\n\r\n{}",
        HEAD "Connection: close\r\nContent-Length: 2\r\n\r\n{}POST / HTTP/1.1\r\n"};
    for (size_t i = 0; i < 2; i++) {
        int fd = dial();
        struct buf in BUF_AUTO = BUF_INIT;
        say(fd, heads[i], strlen(heads[i]));
        hear(fd, &in, SIZE_MAX);
        assert_memory_equal(buf_str(&in), "HTTP/1.1 200 OK\r\n", 17);
        assert_non_null(strstr(in.data, "\r\nConnection: close\r\n"));
        assert_non_null(strstr(in.data, "-32600"));
        close(fd);
    }
}

static void says_continue(void **state)
{
    (void)state;
    int fd = dial();
    struct buf in BUF_AUTO = BUF_INIT;
    static const char body[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\"}";
    static const char head[] = HEAD "Expect: 100-continue\r\nContent-Length: 40\r\n\r\n";
    static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
    say(fd, head, strlen(head));
    hear(fd, &in, strlen(go_on));
    assert_string_equal(buf_str(&in), go_on);
    say(fd, body, strlen(body));
    expect_answer(fd, ECHO1);
    close(fd);
}

static void takes_chunks(void **state)
{
    (void)state;
    int fd = dial();
    static const char text[] = CHUNKED
        "a;x=y\r\n{\"jsonrpc\"\r\n1d\r\n:\"2.0\",\"id\":1,\"method\":\"echo\"\r\n1\r\n}\r\n0\r\nT: x\r\n\r\n";
    say(fd, text, strlen(text));
    expect_answer(fd, ECHO1);
    close(fd);
}

static void takes_large_requests(void **state)
{
    (void)state;
    struct buf b BUF_AUTO = BUF_INIT, body BUF_AUTO = BUF_INIT;
    buf_adds(&body, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"length\",\"params\":{\"a\":\"");
    size_t size = 64u << 20;
    buf_reserve(&body, size);
    memset(body.data + body.len, 'x', size);
    body.len += size;
    buf_adds(&body, "\"}}");
    buf_addf(&b, HEAD "Content-Length: %zu\r\n\r\n", body.len);
    int fd = dial();
    say(fd, b.data, b.len);
    say(fd, body.data, body.len);
    char expected[80];
    snprintf(expected, sizeof expected, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":%zu}", body.len);
    expect_answer(fd, expected);
    close(fd);
}

static void gives_large_answers(void **state)
{
    (void)state;
    int fd = dial();
    struct buf b BUF_AUTO = BUF_INIT;
    say_request(fd, "1", "size", "{\"n\":100000000}");
    assert_int_equal(hear_answer(fd, &b), 200);
    assert_int_equal(b.len, 100000000 + strlen("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"\"}"));
    close(fd);
}

static void notices_who_leaves(void **state)
{
    (void)state;
    int closing = dial(), halving = dial(), staying = dial();
    say_request(closing, "1", "wait", NULL);
    say_request(halving, "1", "wait", NULL);
    say_request(staying, "1", "wait", NULL);
    expect_state(served.path, "open 3 pending 3 abandoned 0 delivered 0 lost 0");
    close(closing);
    shutdown(halving, SHUT_WR);
    expect_state(served.path, "open 2 pending 2 abandoned 1 delivered 0 lost 0");
    close(halving);
    expect_state(served.path, "open 1 pending 1 abandoned 2 delivered 0 lost 0");
    int other = dial();
    say_request(other, "1", "go", NULL);
    expect_answer(staying, ECHO1);
    close(staying);
    close(other);
    expect_state(served.path, "open 0 pending 0 abandoned 2 delivered 1 lost 0");
}

/* As `nc -N` and socat do. */
static void answers_who_has_said_all(void **state)
{
    (void)state;
    int halving = dial(), lost = dial();
    say_request(halving, "1", "wait", NULL);
    say_request(halving, "3", "echo", NULL); /* and what it sent ahead */
    say_request(lost, "1", "wait", NULL);
    shutdown(halving, SHUT_WR);
    shutdown(lost, SHUT_WR);
    expect_state(served.path, "open 2 pending 2 abandoned 0 delivered 0 lost 0");
    int other = dial();
    say_request(other, "1", "go", NULL);
    close(other);
    expect_answer(halving, ECHO1);
    expect_answer(halving, ECHO3);
    char byte;
    assert_int_equal(read(halving, &byte, 1), 0);
    expect_state(served.path, "open 0 pending 0 abandoned 0 delivered 1 lost 0");
    close(lost); /* without having read */
    close(halving);
    expect_state(served.path, "open 0 pending 0 abandoned 0 delivered 1 lost 1");
}

/* What was asked for is done even if nobody waits for the answer. */
static void does_what_was_asked(void **state)
{
    (void)state;
    int fd = dial();
    say_request(fd, "1", "wait", NULL);
    expect_state(served.path, "open 1 pending 1 abandoned 0 delivered 0 lost 0");
    int other = dial();
    say_request(other, "1", "go", NULL);
    close(other);
    expect_answer(fd, ECHO1);
    close(fd);
}

static void knows_what_was_delivered(void **state)
{
    (void)state;
    struct buf b BUF_AUTO = BUF_INIT;
    int fd = dial();
    say_request(fd, "1", "late", NULL);
    expect_answer(fd, ECHO1);
    say_request(fd, "1", "late", NULL); /* who sends on has read */
    expect_answer(fd, ECHO1);
    expect_state(served.path, "open 0 pending 0 abandoned 0 delivered 2 lost 0"); /* kept, and read */
    close(fd);
    expect_state(served.path, "open 0 pending 0 abandoned 0 delivered 2 lost 0");

    fd = dial();
    say_request(fd, "1", "late", NULL);
    const char *answer =
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 36\r\n\r\n" ECHO1;
    hear(fd, &b, strlen(answer) - 1); /* all but the last byte */
    assert_memory_equal(b.data, answer, b.len);
    close(fd);
    expect_state(served.path, "open 0 pending 0 abandoned 0 delivered 2 lost 1");

    fd = dial(); /* gone while the answer is being written */
    say_request(fd, "1", "size", "{\"n\":10000000}");
    hear(fd, &b, 1000);
    close(fd);
    expect_state(served.path, "open 0 pending 0 abandoned 0 delivered 2 lost 2");

    fd = dial(); /* a connection that closes behind the answer tells as well */
    static const char last[] = HEAD
        "Connection: close\r\nContent-Length: 40\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"late\"}";
    say(fd, last, strlen(last));
    buf_truncate(&b, 0);
    hear(fd, &b, SIZE_MAX);
    close(fd);
    expect_state(served.path, "open 0 pending 0 abandoned 0 delivered 3 lost 2");
}

static void ends_from_inside(void **state)
{
    (void)state;
    int waiting = dial(), fd = dial();
    say_request(waiting, "1", "wait", NULL);
    expect_state(served.path, "open 1 pending 1 abandoned 0 delivered 0 lost 0");
    struct buf b BUF_AUTO = BUF_INIT;
    request(&b, "1", "free", NULL);
    request(&b, "1", "echo", NULL);
    say(fd, b.data, b.len);
    expect_ended(served.pid);
    served.pid = 0;
    close(fd);
    close(waiting);
}

static long long cpu_ns(pid_t pid)
{
    clockid_t clock;
    struct timespec t;
    assert_int_equal(clock_getcpuclockid(pid, &clock), 0);
    assert_int_equal(clock_gettime(clock, &t), 0);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static long long wake_ups(pid_t pid)
{
    char path[64];
    struct buf b BUF_AUTO = BUF_INIT;
    snprintf(path, sizeof path, "/proc/%ld/status", (long)pid);
    if (io_read_file(AT_FDCWD, path, &b) < 0)
        skip_because("no /proc");
    const char *line = strstr(b.data, "\nvoluntary_ctxt_switches:");
    assert_non_null(line);
    return strtoll(strchr(line, ':') + 1, NULL, 10);
}

static void idles(void **state)
{
    (void)state;
    int silent = dial(), waiting = dial(), begun = dial();
    say_request(waiting, "1", "wait", NULL);
    say(begun, "POST / HT", 9);
    expect_state(served.path, "open 1 pending 1 abandoned 0 delivered 0 lost 0");
    usleep(100000);
    long long before = wake_ups(served.pid);
    usleep(500000);
    assert_int_equal(wake_ups(served.pid), before);
    close(silent);
    close(waiting);
    close(begun);
}

static void survives_without_descriptors(void **state)
{
    (void)state;
    not_under_valgrind();
    struct rlimit few = {16, 16};
    int fds[40];
    assert_int_equal(prlimit(served.pid, RLIMIT_NOFILE, &few, NULL), 0);
    for (int i = 0; i < 40; i++)
        fds[i] = dial(); /* those over the limit wait in the queue */
    say_request(fds[0], "1", "echo", NULL);
    expect_answer(fds[0], ECHO1);
    long long before = cpu_ns(served.pid);
    usleep(1000000);
    assert_true(cpu_ns(served.pid) - before < 100000000); /* ten looks; spinning takes all it gets */
    for (int i = 0; i < 39; i++)
        close(fds[i]);
    say_request(fds[39], "1", "echo", NULL);
    expect_answer(fds[39], ECHO1);
    close(fds[39]);
}

/* Only root and the server's own user. */
static void refuses_strangers(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip_because("only root can become a stranger");
    assert_int_equal(chmod(served.dir, 0711), 0);
    assert_int_equal(chmod(served.path, 0777), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        char data[16];
        if (setgid(12345) < 0 || setuid(12345) < 0)
            _exit(2);
        int fd = connect_to(served.path);
        _exit(fd >= 0 && recv(fd, data, sizeof data, 0) == 0 ? 0 : 1);
    }
    expect_ended(pid);
}

#define SERVED(test) cmocka_unit_test_setup_teardown(test, served_start, served_stop)

/* ---- as its own process sees it ---- */

static void end_run(void *arg)
{
    loop_stop(arg, 0);
}

/* Until the server says so of itself. */
#define RUN_UNTIL(condition)                                                                                 \
    for (long long until = now_ms() + PATIENCE_MS; !(condition);) {                                          \
        struct loop_source *timer = loop_timer(loop, 1, end_run, loop);                                      \
        loop_run(loop);                                                                                      \
        loop_remove(timer);                                                                                  \
        assert_true(now_ms() < until);                                                                       \
    }

static void knows_whether_it_is_busy(void **state)
{
    (void)state;
    static const char body[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"late\"}";
    char dir[] = "/tmp/served-XXXXXX", path[64];
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/s", dir);
    struct loop *loop = loop_new(NULL);
    struct http_server *s = http_server_new(loop, listen_at(path), host_find, NULL);
    assert_false(http_server_busy(s));
    int fd = connect_to(path), other = connect_to(path);
    RUN_UNTIL(http_server_counts(s).open == 2);
    assert_false(http_server_busy(s));
    say(fd, "P", 1);
    RUN_UNTIL(http_server_busy(s)); /* a line has begun */
    say(fd, "OST / HTTP/1.1\r\n", 16);
    close(other);
    RUN_UNTIL(http_server_counts(s).open == 1);
    assert_true(http_server_busy(s)); /* a head has */
    char rest[64];
    int n = snprintf(rest, sizeof rest, "Host: x\r\nContent-Length: %zu\r\n\r\n", sizeof body - 1);
    say(fd, rest, (size_t)n);
    say(fd, body, sizeof body - 1);
    RUN_UNTIL(http_server_counts(s).bytes_out > 0);
    assert_true(http_server_busy(s)); /* nobody has read the answer */
    struct buf answer BUF_AUTO = BUF_INIT;
    assert_int_equal(hear_answer(fd, &answer), 200);
    RUN_UNTIL(!http_server_busy(s));
    say(fd, "x", 1);
    RUN_UNTIL(http_server_busy(s));
    close(fd);
    RUN_UNTIL(http_server_counts(s).open == 0);
    fd = connect_to(path);
    say(fd, "odd\r\n\r\n", 7);
    assert_int_equal(http_server_counts(s).refused, 0);
    RUN_UNTIL(http_server_counts(s).refused > 0);
    struct http_counts counts = http_server_counts(s);
    assert_true(counts.connections == 3 && counts.strangers == 0 && counts.requests == 1 &&
                counts.refused == 1);
    assert_true(counts.bytes_in == sizeof body - 1 && counts.bytes_out == answer.len && counts.open == 1);
    close(fd);
    http_server_free(s);
    loop_free(loop);
    unlink(path);
    rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parses),
        cmocka_unit_test(leaves_the_next_request),
        cmocka_unit_test(refuses),
        cmocka_unit_test(takes_any_method_and_target),
        cmocka_unit_test(keeps_the_fields),
        cmocka_unit_test(bounds_the_head),
        cmocka_unit_test(waits_only_after_the_head),
        SERVED(keeps_connections),
        SERVED(takes_bytes_one_by_one),
        SERVED(answers_in_order),
        SERVED(bounds_what_is_sent_ahead),
        SERVED(says_nothing_to_notifications),
        SERVED(refuses_and_closes),
        SERVED(refuses_while_the_body_comes),
        SERVED(closes_when_asked),
        SERVED(says_continue),
        SERVED(takes_chunks),
        SERVED(takes_large_requests),
        SERVED(gives_large_answers),
        SERVED(notices_who_leaves),
        SERVED(answers_who_has_said_all),
        SERVED(does_what_was_asked),
        SERVED(knows_what_was_delivered),
        SERVED(ends_from_inside),
        SERVED(idles),
        SERVED(survives_without_descriptors),
        SERVED(refuses_strangers),
        cmocka_unit_test(knows_whether_it_is_busy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
