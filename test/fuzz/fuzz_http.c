/* Any bytes, whole and cut in three (the first two bytes say where): the parser must come to the same end. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "http_parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct outcome {
    struct http_parser p;
    size_t taken;
};

static void feed(struct outcome *o, const uint8_t *data, size_t n)
{
    size_t taken = http_parse(&o->p, (const char *)data, n);
    assert(taken <= n && (taken == n || o->p.state >= HTTP_COMPLETE));
    assert(o->p.body.len <= HTTP_BODY_MAX && o->p.reading.line.len <= HTTP_HEAD_MAX);
    assert((o->p.state == HTTP_REFUSED) == (o->p.status != 0));
    o->taken += taken;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct outcome whole = {.taken = 0}, cut = {.taken = 0};
    size_t first = size > 2 ? data[0] * size / 256 : 0, second = size > 2 ? data[1] * size / 256 : 0;
    if (size < 2)
        return 0;
    data += 2;
    size -= 2;
    first = first < size ? first : size;
    second = second < size - first ? second : size - first;
    http_parser_init(&whole.p);
    http_parser_init(&cut.p);
    feed(&whole, data, size);
    feed(&cut, data, first);
    feed(&cut, data + first, second);
    feed(&cut, data + first + second, size - first - second);
    assert(whole.p.state == cut.p.state && whole.p.status == cut.p.status);
    assert(whole.p.keep_alive == cut.p.keep_alive && whole.p.expects == cut.p.expects);
    assert(whole.p.body.len == cut.p.body.len);
    if (whole.p.state != HTTP_REFUSED)
        assert(whole.taken == cut.taken);
    if (whole.p.body.len > 0)
        assert(memcmp(whole.p.body.data, cut.p.body.data, whole.p.body.len) == 0);
    http_parser_release(&whole.p);
    http_parser_release(&cut.p);
    return 0;
}
