/* A response and where it leads: whole and in pieces the same, never more body than was sent. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "http_response.h"
#include "host/release/fetch_url.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct body {
    struct buf bytes;
};

static int take(void *arg, const char *data, size_t n, struct err *err)
{
    struct body *b = arg;
    (void)err;
    return buf_add(&b->bytes, data, n);
}

static int parse(struct http_response *r, struct body *b, const char *data, size_t n, size_t piece)
{
    struct err err;
    buf_init(&b->bytes, BUF_NO_MAX);
    http_response_init(r);
    r->body = take;
    r->arg = b;
    for (size_t at = 0; at < n; at += piece)
        if (http_response_feed(r, data + at, piece < n - at ? piece : n - at, &err) < 0)
            return -1;
    return http_response_end(r, &err);
}

static void follow(const char *location)
{
    struct err err;
    struct fetch_url base = {0}, url = {0};
    if (fetch_url_parse("https://host.test:444/a/b?c", &base, &err) < 0)
        abort();
    char *to = fetch_url_resolve(&base, location);
    if (fetch_url_parse(to, &url, &err) == 0 &&
        (strncasecmp(to, "https://", 8) != 0 || !url.host[0] || url.path[0] != '/' ||
         strpbrk(url.path, "\r\n ") || strpbrk(url.authority, "\r\n @/")))
        abort();
    free(to);
    fetch_url_release(&base);
    fetch_url_release(&url);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct http_response whole, pieces;
    struct body one, other;
    int result = parse(&whole, &one, (const char *)data, size, size ? size : 1);
    int again = parse(&pieces, &other, (const char *)data, size, 3);
    if (result != again || one.bytes.len > size ||
        (result == 0 && (whole.status != pieces.status || one.bytes.len != other.bytes.len ||
                         (one.bytes.len && memcmp(one.bytes.data, other.bytes.data, one.bytes.len) != 0))))
        abort();
    if (whole.location.len > 0)
        follow(buf_str(&whole.location));
    buf_release(&one.bytes);
    buf_release(&other.bytes);
    http_response_release(&whole);
    http_response_release(&pieces);
    return 0;
}
