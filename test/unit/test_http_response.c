/* Responses whole and byte by byte, and where their redirects lead. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "http_response.h"
#include "host/release/fetch_url.h"

static int add(void *arg, const char *data, size_t n, struct err *err)
{
    (void)err;
    return buf_add(arg, data, n);
}

/* The status, or -1; the body. */
static int parse(const char *text, size_t n, size_t piece, struct buf *body)
{
    struct http_response r;
    struct err err;
    http_response_init(&r);
    r.body = add;
    r.arg = body;
    int result = 0;
    for (size_t at = 0; at < n && result == 0; at += piece)
        result = http_response_feed(&r, text + at, piece < n - at ? piece : n - at, &err);
    if (result == 0)
        result = http_response_end(&r, &err);
    int status = r.status;
    http_response_release(&r);
    return result < 0 ? -1 : status;
}

static const struct {
    const char *text;
    int status;
    const char *body;
} response_cases[] = {
    {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", 200, "hi"},
    {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi and more", 200, "hi"},
    {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 200, ""},
    {"HTTP/1.1 200 OK\r\ncontent-length:2 \r\nContent-Length: 2\r\n\r\nhi", 200, "hi"},
    {"HTTP/1.0 200\n\nhi", 200, "hi"},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n1;x\r\nh\r\n01 \r\ni\r\n0\r\nT: x\r\n\r\n", 200,
     "hi"},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nA\n0123456789\n0\n\n", 200, "0123456789"},
    {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 206 P\r\nContent-Length: 1\r\n\r\nx", 206, "x"},
    {"HTTP/1.1 404 No\r\nContent-Length: 4\r\n\r\nnone", 404, ""},
    {"HTTP/1.1 204 No Content\r\n\r\n", 204, ""},
    {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nhi", -1, "hi"},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n", -1, "hi"},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n", -1, "hi"},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhix\r\n", -1, "hi"},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-2\r\nhi", -1, ""},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nhi", -1, ""},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked\r\n\r\n", -1, ""},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\nhi", -1, ""},
    {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nhi", -1, ""},
    {"HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nhi", -1, ""},
    {"HTTP/1.1 200 OK\r\nContent-Length: 9999999999999999999\r\n\r\nhi", -1, ""},
    {"HTTP/1.1 200 OK\r\nContent-Length : 2\r\n\r\nhi", -1, ""},
    {"HTTP/1.1 200 OK\r\n: x\r\n\r\nhi", -1, ""},
    {"HTTP/1.1 200 OK\r\n folded\r\n\r\nhi", -1, ""},
    {"HTTP/1.1 2000 OK\r\n\r\nhi", -1, ""},
    {"HTTP/1.1 099 OK\r\n\r\nhi", -1, ""},
    {"HTTP/2 200\r\n\r\nhi", -1, ""},
    {"hello\r\n\r\n", -1, ""},
    {"\r\n\r\n", -1, ""},
    {"", -1, ""},
    {"HTTP/1.1 200 OK\r\n", -1, ""},
    {"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", 304, ""},
    {"HTTP/1.1 101 Switching\r\n\r\nhi", 101, ""},
    {"HTTP/1.1 100 A\r\n\r\nHTTP/1.1 199 B\r\n\r\nHTTP/1.1 299 C\r\n\r\nhi", 299, "hi"},
    {"HTTP/1.1 100 A\r\nContent-Length: 9\r\n\r\nHTTP/1.1 200 C\r\n\r\nhi", 200, "hi"},
    {"HTTP/1.1 100 A\r\nTransfer-Encoding: chunked\r\n\r\nHTTP/1.1 200 C\r\n\r\nhi", 200, "hi"},
    {"HTTP/1.1 300 OK\r\n\r\nhi", 300, ""},
    {"HTTP/1.0 200 OK\r\nContent-Length:\t2\t \r\n\r\nhi", 200, "hi"},
    {"HTTP/1.1 200 OK\r\nContent-Encoding: identity\r\n\r\nhi", 200, "hi"},
    {"HTTP/1.1 200 OK\r\nContent-Encoding:\r\n\r\nhi", 200, "hi"},
    {"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\nhi", -1, ""},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", -1, ""},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n0\r\n\r\n", -1, ""},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n000000000000002\r\nhi\r\n0\r\n\r\n", 200, "hi"},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0000000000000002\r\nhi\r\n0\r\n\r\n", -1, ""},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\t;x=1\r\nhi\r\n0 \r\nA: b\r\nC: d\r\n\r\n", 200,
     "hi"},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0f\r\n0123456789abcde\r\n0\r\n\r\n", 200,
     "0123456789abcde"},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0F\r\n0123456789abcde\r\n0\r\n\r\n", 200,
     "0123456789abcde"},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2x\r\nhi", -1, ""},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\nhi", -1, ""},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\nx\r\n", -1, "hi"},
    {"HTTP/1.1 200 OK\r\nContent-Length: 999999999999999999\r\n\r\nhi", -1, "hi"},
    {"HTTP/1.1 200 OK\r\nContent-Length: 2x\r\n\r\nhi", -1, ""},
    {"HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\nhi", -1, ""},
    {"HTTP/1.1 100 OK\r\n\r\n", -1, ""},
    {"HTTP/1.2 200 OK\r\n\r\nhi", -1, ""},
    {"HTTP/1.1-200 OK\r\n\r\nhi", -1, ""},
    {"HTTP/1.1 20 OK\r\n\r\nhi", -1, ""},
    {"HTTP/1.1 200OK\r\n\r\nhi", -1, ""},
    {"HTTP/1.1  200 OK\r\n\r\nhi", -1, ""},
    {"HTTP/1.1 200 OK\r\nno field\r\n\r\nhi", -1, ""},
    {"HTTP/1.1 200 OK\r\nA\tb: c\r\n\r\nhi", -1, ""},
    {"\nHTTP/1.1 200 OK\r\n\r\nhi", -1, ""},
};

static void responses(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof response_cases / sizeof *response_cases; i++)
        for (size_t piece = 1; piece < 50; piece += 7) {
            struct buf body = BUF_INIT;
            int status = parse(response_cases[i].text, strlen(response_cases[i].text), piece, &body);
            if (status != response_cases[i].status || strcmp(buf_str(&body), response_cases[i].body) != 0)
                fail_msg("case %zu in pieces of %zu: %d '%s'", i, piece, status, buf_str(&body));
            buf_release(&body);
        }
}

static void heads(void **state)
{
    (void)state;
    static const struct {
        const char *text, *location;
        bool has_range, has_length;
        unsigned long long range, length;
    } cases[] = {
        {"HTTP/1.1 302 F\r\nLocation: /a \r\nlocation: /b\r\n\r\n", "/a", false, false, 0, 0},
        {"HTTP/1.1 100 A\r\nLocation: /a\r\nContent-Range: bytes 7-9/10\r\n\r\nHTTP/1.1 200 B\r\n\r\n", "",
         false, false, 0, 0},
        {"HTTP/1.1 206 P\r\nContent-Range: Bytes 17-19/20\r\nContent-Length: 3\r\n\r\n", "", true, true, 17,
         3},
        {"HTTP/1.1 206 P\r\nContent-Range: bytes 17+19/20\r\n\r\n", "", false, false, 17, 0},
        {"HTTP/1.1 206 P\r\nContent-Range: bytes */20\r\n\r\n", "", false, false, 0, 0},
        {"HTTP/1.1 206 P\r\nContent-Range: lines 1-2/20\r\n\r\n", "", false, false, 0, 0},
        {"HTTP/1.1 200 P\r\nContent-Length: 123456789012345678\r\n\r\n", "", false, true, 0,
         123456789012345678},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct http_response r;
        struct err err;
        http_response_init(&r);
        assert_int_equal(http_response_feed(&r, cases[i].text, strlen(cases[i].text), &err), 0);
        assert_int_not_equal(r.state, RESPONSE_HEAD);
        assert_string_equal(buf_str(&r.location), cases[i].location);
        assert_int_equal(r.has_range, cases[i].has_range);
        if (r.has_range)
            assert_int_equal(r.range_start, cases[i].range);
        assert_int_equal(r.has_length, cases[i].has_length);
        assert_int_equal(r.length, cases[i].length);
        http_response_release(&r);
    }
}

/* How much of something in the middle goes well, up to `most`. */
static size_t most_of(const char *before, const char *again, const char *after, size_t most)
{
    size_t n = 0;
    for (size_t step = most; step > 0; step /= 2)
        while (n + step <= most) {
            struct buf text = BUF_INIT, body = BUF_INIT;
            buf_adds(&text, before);
            for (size_t i = 0; i < n + step; i++)
                buf_adds(&text, again);
            buf_adds(&text, after);
            int status = parse(text.data, text.len, 700, &body);
            buf_release(&text);
            buf_release(&body);
            if (status != 200)
                break;
            n += step;
        }
    return n;
}

static void what_nobody_wants_is_bounded(void **state)
{
    (void)state;
    static const char chunked[] = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    const char *status = "HTTP/1.1 200 OK\r\nA: ";
    size_t n = most_of(status, "x", "\r\n\r\n", 40000);
    assert_int_equal(n, HTTP_RESPONSE_HEAD_MAX - strlen(status) - 4);
    /* interim answers: 16 bytes, and what each costs besides */
    n = most_of("", "HTTP/1.1 100 A\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n", 200);
    assert_int_equal(n, HTTP_RESPONSE_HEAD_MAX / (18 + 1024));
    /* extensions of a chunk, and trailers */
    assert_int_equal(
        most_of("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;", "x", "\r\nh\r\n0\r\n\r\n", 2000),
        1024 - 4);
    char trailers[100];
    snprintf(trailers, sizeof trailers, "%s0\r\n", chunked);
    assert_int_equal(most_of(trailers, "A: 0123456789abc\r\n", "\r\n", 4000),
                     (HTTP_RESPONSE_HEAD_MAX - 3 - 2) / 18);
    /* chunks of a byte earn what their framing takes, up to what there was */
    assert_int_equal(most_of(chunked, "1\r\nx\r\n", "0\r\n\r\n", 20000), 20000);
    n = most_of(chunked, "1;12345678901234567890\r\nx\r\n", "0\r\n\r\n", 20000);
    assert_int_equal(n, 1820);
}

static void a_nul_is_refused(void **state)
{
    (void)state;
    struct buf body = BUF_INIT;
    static const char text[] = "HTTP/1.1 200 OK\r\nA: \0b\r\n\r\nhi";
    assert_int_equal(parse(text, sizeof text - 1, 100, &body), -1);
    buf_release(&body);
}

static int no_room(void *arg, const char *data, size_t n, struct err *err)
{
    (void)arg;
    (void)data;
    (void)n;
    return err_set(err, ERR_TOOL, "full");
}

static void whoever_takes_the_body_may_end_it(void **state)
{
    (void)state;
    static const char text[] = "HTTP/1.1 200 OK\r\n\r\nhi", other[] = "HTTP/1.1 404 No\r\n\r\nhi";
    struct http_response r;
    struct err err;
    http_response_init(&r);
    r.body = no_room;
    assert_int_equal(http_response_feed(&r, text, sizeof text - 1, &err), -1);
    assert_string_equal(err.msg, "full");
    http_response_release(&r);
    http_response_init(&r);
    r.body = no_room;
    assert_int_equal(http_response_feed(&r, other, sizeof other - 1, &err), 0);
    http_response_release(&r);
    http_response_init(&r); /* nobody takes it */
    assert_int_equal(http_response_feed(&r, text, sizeof text - 1, &err), 0);
    assert_int_equal(http_response_end(&r, &err), 0);
    http_response_release(&r);
}

static void addresses(void **state)
{
    (void)state;
    static const struct {
        const char *text, *host, *port, *path;
    } good[] = {
        {"https://a.test", "a.test", "443", "/"},
        {"HTTPS://a.test:8443/x/y?z#f", "a.test", "8443", "/x/y?z"},
        {"https://a.test?z", "a.test", "443", "/?z"},
        {"https://[::1]:1/", "::1", "1", "/"},
        {"https://127.0.0.1#f", "127.0.0.1", "443", "/"},
    };
    struct err err;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        struct fetch_url url = {0};
        assert_int_equal(fetch_url_parse(good[i].text, &url, &err), 0);
        assert_string_equal(url.host, good[i].host);
        assert_string_equal(url.port, good[i].port);
        assert_string_equal(url.path, good[i].path);
        fetch_url_release(&url);
    }
    static const char *const bad[] = {
        "",
        "http://a/",
        "https:/a",
        "https://",
        "https:///x",
        "https://a:/",
        "https://a:b/",
        "https://a:123456/",
        "https://a b/",
        "https://[::1/",
        "https://[]/",
        "https://::1/",
        "https://[x]/",
        "https://u@a/",
        "https://u:p@a/",
        "https://a/\r\nX: y",
        "https://a/\xc3\xa9",
        "https://a\\b/",
        "https://a/<",
        "https://a%2f/",
        "//a/",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct fetch_url url = {0};
        if (fetch_url_parse(bad[i], &url, &err) != -1)
            fail_msg("taken: %s", bad[i]);
        fetch_url_release(&url);
    }
}

static void redirects(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"https://b.test/", "https://b.test/"}, {"http://b.test/", "http://b.test/"},
        {"//b.test/x", "https://b.test/x"},     {"/x", "https://a.test:1/x"},
        {"x", "https://a.test:1/d/x"},          {"../x", "https://a.test:1/d/../x"},
        {"?q", "https://a.test:1/d/f?q"},       {"", "https://a.test:1/d/"},
        {"javascript:x", "javascript:x"},
    };
    struct err err;
    struct fetch_url base = {0};
    assert_int_equal(fetch_url_parse("https://a.test:1/d/f?a/b", &base, &err), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *to = fetch_url_resolve(&base, cases[i][0]);
        assert_string_equal(to, cases[i][1]);
        free(to);
    }
    fetch_url_release(&base);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(responses),
        cmocka_unit_test(heads),
        cmocka_unit_test(what_nobody_wants_is_bounded),
        cmocka_unit_test(a_nul_is_refused),
        cmocka_unit_test(whoever_takes_the_body_may_end_it),
        cmocka_unit_test(addresses),
        cmocka_unit_test(redirects),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
