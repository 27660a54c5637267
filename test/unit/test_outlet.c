/* What a proxy of ours understands and lets through: hosts, rules, requests, the first message of TLS. */
#include "support.h"

#include <arpa/inet.h>

#include "host/outlet/outlet_hello.h"
#include "host/outlet/outlet_request.h"

static struct err err;

/* ---- hosts and rules ---- */

static const char *host_of(const char *text)
{
    static char host[OUTLET_HOST_MAX];
    return outlet_host(text, strlen(text), host) ? host : "none";
}

static void hosts_have_one_form(void **state)
{
    static const char *const forms[][2] = {
        {"Example.ORG", "example.org"},
        {"example.org.", "example.org"},
        {"xn--bcher-kva.example", "xn--bcher-kva.example"},
        {"a_b.example", "a_b.example"},
        {"127.0.0.1", "127.0.0.1"},
        {"::ffff:127.0.0.1", "127.0.0.1"},
        {"::FFFF:7f00:1", "127.0.0.1"},
        {"0:0::1", "::1"},
        {"localhost", "localhost"},
    };
    static const char *const none[] = {"",
                                       ".",
                                       "a..b",
                                       "example.org..",
                                       "b\303\274cher.example",
                                       "a b",
                                       "a@b",
                                       "a%2eb",
                                       "2130706433",
                                       "0x7f000001",
                                       "0177.0.0.1",
                                       "127.1",
                                       "0x7f.1",
                                       "1.2.3.4.5",
                                       "127.0.0.01",
                                       "256.1.1.1",
                                       "a.0x1",
                                       "[::1]",
                                       "::1%lo",
                                       "a/b",
                                       "127.0.0.1:80"};
    (void)state;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        assert_string_equal(host_of(forms[i][0]), forms[i][1]);
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_string_equal(host_of(none[i]), "none");
    char label[400];
    memset(label, 'a', sizeof label);
    char host[OUTLET_HOST_MAX];
    assert_false(outlet_host(label, 64, host));
    assert_true(outlet_host(label, 63, host));
    for (size_t i = 50; i < sizeof label; i += 51)
        label[i] = '.';
    assert_false(outlet_host(label, 254, host));
    assert_true(outlet_host(label, 253, host));
    assert_false(outlet_host("a\0b", 3, host));
}

static bool lets(const char *rules, const char *host, unsigned port)
{
    struct outlet_rules r = {0};
    assert_int_equal(outlet_rules_add(&r, rules, &err), 0);
    bool result = outlet_names(&r, host, port);
    outlet_rules_release(&r);
    return result;
}

static bool reaches(const char *rules, const char *address, unsigned port)
{
    struct outlet_rules r = {0};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    assert_int_equal(outlet_rules_add(&r, rules, &err), 0);
    bool is_v4 = inet_pton(AF_INET, address, &v4.sin_addr) == 1;
    assert_true(is_v4 || inet_pton(AF_INET6, address, &v6.sin6_addr) == 1);
    bool result = outlet_reaches(&r, is_v4 ? (struct sockaddr *)&v4 : (struct sockaddr *)&v6);
    outlet_rules_release(&r);
    return result;
}

static void names_are_let_through_with_their_ports(void **state)
{
    (void)state;
    assert_true(lets("example.org", "example.org", 443) && lets("Example.org.", "example.org", 80));
    assert_false(lets("example.org", "example.org", 22) || lets("example.org", "a.example.org", 443));
    assert_false(lets("example.org", "example.org.evil.com", 443) ||
                 lets("example.org", "notexample.org", 443));
    assert_true(lets("*.example.org", "a.example.org", 443) && lets("*.example.org", "a.b.example.org", 443));
    assert_false(lets("*.example.org", "example.org", 443) || lets("*.example.org", "aexample.org", 443));
    assert_true(lets("a.b,example.org:22", "example.org", 22) && lets("example.org:*", "example.org", 1));
    assert_false(lets("example.org:22", "example.org", 443));
    assert_true(lets("*", "any.example", 443));
    assert_false(lets("*", "93.184.216.34", 443) || lets("*", "::1", 443) || lets("*", "any.example", 25));
    assert_true(lets("10.0.0.0/8", "10.1.2.3", 443) && lets("10.1.2.3:22", "10.1.2.3", 22));
    assert_false(lets("10.0.0.0/8", "11.0.0.1", 443) || lets("10.0.0.0/9", "10.128.0.1", 443));
    assert_true(lets("[fc00::1]:8080", "fc00::1", 8080) && lets("::1", "::1", 80) &&
                lets("[fc00::]/7:*", "fd00::1", 9));
    assert_true(lets("::ffff:10.0.0.1", "10.0.0.1", 80));
    assert_false(lets("[::]/8:*", "10.0.0.1", 80));
    static const char *const wrong[] = {"",
                                        "a,",
                                        "a b",
                                        "example.org:0",
                                        "example.org:70000",
                                        "a:b",
                                        "10.0.0.0/33",
                                        "10.0.0.0/0",
                                        "*.10.0.0.1",
                                        "*a.example",
                                        "http://a",
                                        "[::1",
                                        "[::1]x",
                                        "b\303\274cher.example",
                                        "2130706433"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct outlet_rules r = {0};
        assert_int_equal(outlet_rules_add(&r, wrong[i], &err), -1);
        assert_int_equal(err.code, ERR_PARAMS);
        outlet_rules_release(&r);
    }
}

static void addresses_that_are_not_public_are_to_be_named(void **state)
{
    static const char *const public[] = {"93.184.216.34",     "1.1.1.1",         "172.32.0.1",
                                         "100.128.0.1",       "223.255.255.255", "2606:2800::1",
                                         "64:ff9b::5db8:d822"};
    static const char *const others[] = {"0.0.0.0",          "0.1.2.3",      "10.0.0.1",
                                         "100.64.0.1",       "127.0.0.1",    "127.255.0.1",
                                         "169.254.169.254",  "172.16.0.1",   "172.31.255.255",
                                         "192.168.1.1",      "192.0.0.1",    "198.18.0.1",
                                         "224.0.0.1",        "239.1.1.1",    "240.0.0.1",
                                         "255.255.255.255",  "::",           "::1",
                                         "fe80::1",          "fec0::1",      "fc00::1",
                                         "fd12::1",          "ff02::1",      "::ffff:10.0.0.1",
                                         "::ffff:127.0.0.1", "::7f00:1",     "64:ff9b::a00:1",
                                         "64:ff9b::7f00:1",  "64:ff9b:1::1", "2002:7f00:1::1",
                                         "2001::1",          "2001:db8::1",  "100::1",
                                         "3fff::1"};
    (void)state;
    for (size_t i = 0; i < sizeof public / sizeof *public; i++)
        assert_true(reaches("a.example", public[i], 443));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (reaches("a.example", others[i], 443))
            fail_msg("%s", others[i]);
        char rule[80];
        snprintf(rule, sizeof rule, "a.example,%s", others[i]);
        assert_true(reaches(rule, others[i], 443));
        assert_false(reaches(rule, others[i], 22));
    }
    assert_true(reaches("10.0.0.0/8:*", "10.9.9.9", 22));
}

/* ---- requests ---- */

/* How a request is understood: "HOW HOST PORT", or the status it is refused with; what goes on is in *head.
 */
static const char *read_as(const char *text, size_t n, char *head, size_t size)
{
    static char said[400];
    struct outlet_request r;
    struct buf answer BUF_AUTO = BUF_INIT;
    const char *why;
    long took;
    outlet_request_init(&r);
    size_t at = 0;
    while ((took = outlet_request_read(&r, (struct span){text + at, n - at}, &answer, &why)) > 0 && !r.whole)
        at += (size_t)took;
    if (took < 0)
        snprintf(said, sizeof said, "%.12s",
                 answer.len > 9 && answer.data[0] == 'H' ? answer.data + 9 : "socks");
    else if (took == 0)
        snprintf(said, sizeof said, "more");
    else
        snprintf(said, sizeof said, "%s %s %u", outlet_hows[r.how], r.host, r.port);
    if (took < 0 && answer.data[0] == 'H')
        said[3] = '\0';
    snprintf(head, size, "%s", buf_str(&r.head));
    outlet_request_release(&r);
    return said;
}

static char head[40000];

static const char *http(const char *text)
{
    return read_as(text, strlen(text), head, sizeof head);
}

static void requests_of_http(void **state)
{
    (void)state;
    assert_string_equal(http("CONNECT Example.org:443 HTTP/1.1\r\nHost: example.org\r\n\r\nxx"),
                        "connect example.org 443");
    assert_string_equal(http("CONNECT [::1]:22 HTTP/1.0\r\n\r\n"), "connect ::1 22");
    assert_string_equal(http("CONNECT example.org:443 HTTP/1.1\r\nHost: example.org\r\n"), "more");
    assert_string_equal(
        http("GET http://a.example/x?y HTTP/1.1\r\nHost: evil.example\r\nX-A: b\r\nProxy-Connection: "
             "keep-alive\r\n"
             "Connection: keep-alive, content-length\r\nContent-Length: 3\r\nUpgrade: h2c\r\n\r\nabc"),
        "http a.example 80");
    assert_string_equal(
        head,
        "GET /x?y HTTP/1.1\r\nHost: a.example\r\nX-A: b\r\nContent-Length: 3\r\nConnection: close\r\n\r\n");
    assert_string_equal(http("GET HTTP://[::1]:81?q HTTP/1.0\r\n\r\n"), "http ::1 81");
    assert_string_equal(head, "GET /?q HTTP/1.0\r\nHost: [::1]:81\r\nConnection: close\r\n\r\n");
    assert_string_equal(http("PROPFIND http://a.example HTTP/1.1\r\nHost: a\r\n\r\n"), "http a.example 80");
    static const char *const refused[] = {
        "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET https://a.example/ HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET http://u:p@a.example/ HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET http://a.example@evil.example/ HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET http://a.example#@evil.example/ HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET http://a.example\\@evil.example/ HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET http://a.example:80:81/ HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET http://a.example:0/ HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET http://2130706433/ HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET http://[127.0.0.1]/ HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET http:///x HTTP/1.1\r\nHost: a\r\n\r\n",
        "CONNECT a.example HTTP/1.1\r\nHost: a\r\n\r\n",
        "CONNECT ::1:80 HTTP/1.1\r\nHost: a\r\n\r\n",
        "CONNECT a.example:https HTTP/1.1\r\nHost: a\r\n\r\n",
        "CONNECT http://a.example:443 HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET http://a.example/ HTTP/1.1\r\n\r\n",
        "GET http://a.example/ HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        ("GET http://a.example/ HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: "
         "chunked\r\n\r\n"),
        "GET http://a.example/ HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
        "GET http://a.example/ HTTP/1.1\r\nHost: a\r\nContent-Length : 1\r\n\r\n",
        "GET http://a.example/ HTTP/1.1\r\nHost: a\r\nX: y\r\n folded\r\n\r\n",
        "GET http://a.example/ HTTP/1.1\r\nHost: a\r\nX: y\nZ: 1\r\n\r\n",
        "GET http://a.example/ HTTP/1.1\r\nHost: a\r\nX: y\rZ: 1\r\n\r\n",
        "\r\n\r\n",
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (strcmp(http(refused[i]), "400") != 0)
            fail_msg("%s: %s", refused[i], http(refused[i]));
    assert_string_equal(
        http("GET http://a.example/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"), "501");
    assert_string_equal(http("GET http://a.example/ HTTP/2.0\r\nHost: a\r\n\r\n"), "505");
    struct buf huge BUF_AUTO = BUF_INIT;
    buf_adds(&huge, "GET http://a.example/ HTTP/1.1\r\nHost: a\r\nX: ");
    while (huge.len < 20000)
        buf_adds(&huge, "xxxxxxxxxx");
    assert_string_equal(http(huge.data), "431");
}

static void a_nul_ends_no_request(void **state)
{
    static const char text[] = "GET http://a.example/ HTTP/1.1\r\nHost: a\0b\r\n\r\n";
    (void)state;
    assert_string_equal(read_as(text, sizeof text - 1, head, sizeof head), "400");
}

#define SOCKS(text) read_as((text), sizeof(text) - 1, head, sizeof head)

static void requests_of_socks(void **state)
{
    (void)state;
    assert_string_equal(SOCKS("\4\1\0\120\1\2\3\4me\0"), "socks4 1.2.3.4 80");
    assert_string_equal(SOCKS("\4\1\1\273\0\0\0\1\0A.example\0"), "socks4 a.example 443");
    assert_string_equal(SOCKS("\4\1\1\273\0\0\0\0\0"), "socks4 0.0.0.0 443");
    assert_string_equal(SOCKS("\4\1\1\273\0\0\0\1\0A.exam"), "more");
    assert_string_equal(SOCKS("\4\2\0\120\1\2\3\4\0"), "socks");
    assert_string_equal(SOCKS("\5\2\2\0\5\1\0\3\11a.example\1\273"), "socks5 a.example 443");
    assert_string_equal(SOCKS("\5\1\0\5\1\0\1\177\0\0\1\0\120"), "socks5 127.0.0.1 80");
    assert_string_equal(SOCKS("\5\1\0\5\1\0\4\0\0\0\0\0\0\0\0\0\0\377\377\177\0\0\1\0\120"),
                        "socks5 127.0.0.1 80");
    assert_string_equal(SOCKS("\5\1\0\5\1\0\3\11a.example\1"), "more");
    assert_string_equal(SOCKS("\5\1\0\5\1\0\3\0\1\273"), "socks");
    assert_string_equal(SOCKS("\5\1\0\5\1\0\3\12"
                              "2130706433\0\120"),
                        "socks");
    assert_string_equal(SOCKS("\5\1\0\5\3\0\3\11a.example\1\273"), "socks");
    assert_string_equal(SOCKS("\5\1\0\5\1\0\2\11a.example\1\273"), "socks");
    assert_string_equal(SOCKS("\5\1\0\5\1\0\3\11a.example\0\0"), "socks");
    assert_string_equal(SOCKS("\5\1\2"), "socks"); /* who must say who he is */
    assert_string_equal(SOCKS("\5\0"), "socks");
}

static void much_may_come_behind_a_request(void **state)
{
    static char text[100000] = "\4\1\0\120\1\2\3\4me";
    (void)state;
    assert_string_equal(read_as(text, sizeof text, head, sizeof head), "socks4 1.2.3.4 80");
    memset(text + 8, 'x', sizeof text - 8);
    assert_string_equal(read_as(text, sizeof text, head, sizeof head), "socks");
    /* Bytes. NOLINTNEXTLINE(bugprone-not-null-terminated-result) */
    memcpy(text, "\5\1\0\5\1\0\1\1\2\3\4\0\120", 13);
    assert_string_equal(read_as(text, sizeof text, head, sizeof head), "socks5 1.2.3.4 80");
    static const char connect[] = "CONNECT a.example:1 HTTP/1.1\r\nHost: a\r\n\r\n";
    memcpy(text, connect, sizeof connect - 1);
    assert_string_equal(read_as(text, sizeof text, head, sizeof head), "connect a.example 1");
}

static void what_is_behind_a_request_is_not_let_through(void **state)
{
    static const char text[] =
        "POST http://a.example/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    static const char body[] = "3\r\nabc\r\n0\r\n\r\n";
    struct outlet_request r;
    struct buf answer BUF_AUTO = BUF_INIT;
    const char *why;
    (void)state;
    for (size_t cut = 0; cut < sizeof body - 1; cut++) {
        char all[200];
        snprintf(all, sizeof all, "%sGET / HTTP/1.1\r\n", body);
        outlet_request_init(&r);
        assert_int_equal(outlet_request_read(&r, (struct span){text, sizeof text - 1}, &answer, &why),
                         sizeof text - 1);
        assert_int_equal(outlet_request_body(&r, (struct span){all, cut}), cut);
        assert_int_equal(outlet_request_body(&r, (struct span){all + cut, strlen(all) - cut}),
                         sizeof body - 1 - cut);
        assert_int_equal(outlet_request_body(&r, (struct span){"GET ", 4}), 0);
        outlet_request_release(&r);
    }
    outlet_request_init(&r);
    outlet_request_read(&r, (struct span){text, sizeof text - 1}, &answer, &why);
    assert_int_equal(outlet_request_body(&r, (struct span){"x\r\n", 3}), -1);
    outlet_request_release(&r);
}

static void a_body_is_of_any_length(void **state)
{
    static const char text[] =
        "PUT http://a.example/ HTTP/1.1\r\nHost: a\r\nContent-Length: 1099511627776\r\n\r\n";
    struct outlet_request r;
    struct buf answer BUF_AUTO = BUF_INIT;
    const char *why;
    (void)state;
    outlet_request_init(&r);
    assert_int_equal(outlet_request_read(&r, (struct span){text, sizeof text - 1}, &answer, &why),
                     sizeof text - 1);
    assert_int_equal(outlet_request_body(&r, (struct span){text, sizeof text - 1}), sizeof text - 1);
    assert_true(r.body.body.len == 0);
    outlet_request_release(&r);
}

static bool inside(const char *text)
{
    static const char tunnel[] = "CONNECT a.example:80 HTTP/1.1\r\nHost: a\r\n\r\n";
    struct outlet_request r;
    struct buf answer BUF_AUTO = BUF_INIT;
    const char *why;
    outlet_request_init(&r);
    assert_true(outlet_request_read(&r, (struct span){tunnel, sizeof tunnel - 1}, &answer, &why) > 0);
    bool result = outlet_request_read(&r, (struct span){text, strlen(text)}, &answer, &why) > 0;
    outlet_request_release(&r);
    return result;
}

static void a_request_in_a_tunnel_is_for_its_host(void **state)
{
    (void)state;
    assert_true(inside("GET /x HTTP/1.1\r\nHost: A.example\r\n\r\n") &&
                inside("GET / HTTP/1.1\r\nhost:\ta.example:80 \r\n\r\n"));
    assert_false(inside("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n") || inside("GET / HTTP/1.0\r\n\r\n") ||
                 inside("GET / HTTP/1.1\r\nHost: a.example:81\r\n\r\n") ||
                 inside("GET / HTTP/1.1\r\nHost:\r\n\r\n") ||
                 inside("GET http://evil.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n") ||
                 inside("CONNECT a.example:80 HTTP/1.1\r\nHost: a.example\r\n\r\n") || inside("\5\1\0"));
}

/* ---- TLS ---- */

struct hello {
    char bytes[4000];
    size_t n;
};

static void put(struct hello *h, const void *data, size_t n)
{
    memcpy(h->bytes + h->n, data, n);
    h->n += n;
}

static void put16(struct hello *h, size_t n)
{
    put(h, (char[]){(char)(n >> 8), (char)n}, 2);
}

static void put_name(struct hello *h, const char *name)
{
    size_t n = strlen(name);
    put16(h, 0);
    put16(h, n + 5);
    put16(h, n + 3);
    put(h, "", 1);
    put16(h, n);
    put(h, name, n);
}

/* One with these extensions, in records of so many bytes. */
static struct hello hello_of(const struct hello *extensions, size_t record)
{
    struct hello message = {0}, records = {0};
    char random[32] = {0};
    size_t n = 2 + 32 + 1 + 2 + 2 + 2 + (extensions ? 2 + extensions->n : 0);
    put(&message, (char[]){1, 0, (char)(n >> 8), (char)n, 3, 3}, 6);
    put(&message, random, 32);
    put(&message, "\0\0\2\23\1\1\0", 7);
    if (extensions) {
        put16(&message, extensions->n);
        put(&message, extensions->bytes, extensions->n);
    }
    for (size_t at = 0; at < message.n; at += record) {
        size_t step = message.n - at < record ? message.n - at : record;
        put(&records, "\26\3\1", 3);
        put16(&records, step);
        put(&records, message.bytes + at, step);
    }
    return records;
}

static int read_hello(const struct hello *h, size_t n, struct outlet_hello *read)
{
    return outlet_hello_read((struct span){h->bytes, n}, read);
}

static void the_name_in_tls_is_read_however_it_is_cut(void **state)
{
    struct hello extensions = {0};
    struct outlet_hello read;
    (void)state;
    put(&extensions, "\0\27\0\0", 4);
    put_name(&extensions, "A.Example");
    for (size_t record = 1; record < 100; record++) {
        struct hello h = hello_of(&extensions, record);
        for (size_t n = 0; n < h.n; n++)
            assert_int_equal(read_hello(&h, n, &read), 0);
        put(&h, "\24\3\1\0\1\1", 6); /* what follows */
        assert_int_equal(read_hello(&h, h.n, &read), 1);
        static char long_one[3 * OUTLET_HELLO_MAX];
        memcpy(long_one, h.bytes, h.n);
        assert_int_equal(outlet_hello_read((struct span){long_one, sizeof long_one}, &read), 1);
        assert_string_equal(read.name, "a.example");
        assert_false(read.encrypted);
    }
    put(&extensions, "\376\15\0\1x", 5);
    struct hello h = hello_of(&extensions, 50);
    assert_int_equal(read_hello(&h, h.n, &read), 1);
    assert_true(read.encrypted);
    h = hello_of(NULL, 1000);
    assert_int_equal(read_hello(&h, h.n, &read), 1);
    assert_string_equal(read.name, "");
}

static void what_is_no_hello_is_refused(void **state)
{
    struct hello extensions = {0}, h;
    struct outlet_hello read;
    (void)state;
    put_name(&extensions, "a.example");
    put_name(&extensions, "evil.example");
    h = hello_of(&extensions, 1000);
    assert_int_equal(read_hello(&h, h.n, &read), -1); /* two names */
    extensions.n = 0;
    put_name(&extensions, "a.example");
    extensions.bytes[5] += 5;
    extensions.bytes[3] += 5;
    put(&extensions, "\0\0\2xx", 5);
    h = hello_of(&extensions, 1000);
    assert_int_equal(read_hello(&h, h.n, &read), -1); /* two in one list */
    extensions.n = 0;
    put_name(&extensions, "a example");
    h = hello_of(&extensions, 1000);
    assert_int_equal(read_hello(&h, h.n, &read), -1);
    extensions.n = 0;
    put(&extensions, "\0\0\0\5\0\3\0\0", 8);
    h = hello_of(&extensions, 1000);
    assert_int_equal(read_hello(&h, h.n, &read), -1); /* cut */
    static const char *const others[] = {"SSH-2.0-x", "\26\2\1\0\5", "\26\3\1\0\1\2", "\200\56\1\3\1",
                                         "GET / HTTP/1.1\r\n"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_int_equal(outlet_hello_read((struct span){others[i], i == 2 ? 6 : 5}, &read), -1);
    assert_int_equal(outlet_hello_read((struct span){"\26\3\1\0\0", 5}, &read), -1);
    assert_int_equal(outlet_hello_read((struct span){"\26\3\1\177\377", 5}, &read), 0);
    static char large[OUTLET_HELLO_MAX] = "\26\3\1\77\377\1\0\77\377";
    assert_int_equal(outlet_hello_read((struct span){large, sizeof large}, &read), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hosts_have_one_form),
        cmocka_unit_test(names_are_let_through_with_their_ports),
        cmocka_unit_test(addresses_that_are_not_public_are_to_be_named),
        cmocka_unit_test(requests_of_http),
        cmocka_unit_test(a_nul_ends_no_request),
        cmocka_unit_test(requests_of_socks),
        cmocka_unit_test(much_may_come_behind_a_request),
        cmocka_unit_test(what_is_behind_a_request_is_not_let_through),
        cmocka_unit_test(a_body_is_of_any_length),
        cmocka_unit_test(a_request_in_a_tunnel_is_for_its_host),
        cmocka_unit_test(the_name_in_tls_is_read_however_it_is_cut),
        cmocka_unit_test(what_is_no_hello_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
