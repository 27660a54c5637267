/* Responses whole and byte by byte, and where their redirects lead. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
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

static void responses(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int status;
        const char *body;
    } cases[] = {
        {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", 200, "hi"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi and more", 200, "hi"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 200, ""},
        {"HTTP/1.1 200 OK\r\ncontent-length:2 \r\nContent-Length: 2\r\n\r\nhi", 200, "hi"},
        {"HTTP/1.0 200\n\nhi", 200, "hi"},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n1;x\r\nh\r\n01 \r\ni\r\n0\r\nT: x\r\n\r\n",
         200, "hi"},
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
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t piece = 1; piece < 50; piece += 7) {
            struct buf body = BUF_INIT;
            int status = parse(cases[i].text, strlen(cases[i].text), piece, &body);
            if (status != cases[i].status || strcmp(buf_str(&body), cases[i].body) != 0)
                fail_msg("case %zu in pieces of %zu: %d '%s'", i, piece, status, buf_str(&body));
            buf_release(&body);
        }
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
        cmocka_unit_test(addresses),
        cmocka_unit_test(redirects),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
