/* Any bytes as a client of a proxy: what it asks for is the same however it is cut, never less than what was
 * read, and names a host and a port; what goes on is one request, to that host. And as the first message of
 * TLS: once it is one or none, more bytes don't change that. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "host/outlet/outlet_hello.h"
#include "host/outlet/outlet_request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct client {
    struct outlet_request request;
    struct buf input, answer;
    long last;
    size_t body;
};

static void client_open(struct client *c)
{
    *c = (struct client){.input = BUF_INIT, .answer = BUF_INIT};
    outlet_request_init(&c->request);
}

static void feed(struct client *c, const uint8_t *data, size_t n)
{
    const char *why = NULL;
    if (c->last < 0)
        return;
    buf_add(&c->input, data, n);
    while (!c->request.whole &&
           (c->last = outlet_request_read(&c->request, span_of(&c->input), &c->answer, &why)) > 0) {
        assert((size_t)c->last <= c->input.len);
        buf_consume(&c->input, (size_t)c->last);
    }
    assert(c->last >= 0 || why);
    if (!c->request.whole || c->request.how != OUTLET_HTTP)
        return;
    long took = outlet_request_body(&c->request, span_of(&c->input));
    c->last = took < 0 ? -1 : 1;
    c->body += took > 0 ? (size_t)took : 0;
    buf_truncate(&c->input, 0);
}

static void client_close(struct client *c)
{
    outlet_request_release(&c->request);
    buf_release(&c->input);
    buf_release(&c->answer);
}

/* What goes on is understood as one request over a connection to that host. */
static void check_head(const struct outlet_request *r)
{
    struct outlet_request again;
    struct buf answer BUF_AUTO = BUF_INIT;
    const char *why;
    char host[OUTLET_HOST_MAX];
    assert(outlet_host(r->host, strlen(r->host), host) && strcmp(host, r->host) == 0 && r->port > 0);
    if (r->how != OUTLET_HTTP || r->head.len > HTTP_HEAD_MAX)
        return;
    outlet_request_init(&again);
    memcpy(again.host, host, sizeof host);
    again.port = r->port;
    assert(outlet_request_read(&again, span_of(&r->head), &answer, &why) == (long)r->head.len);
    outlet_request_release(&again);
}

static void check_hello(const uint8_t *data, size_t size, size_t first)
{
    struct outlet_hello part, whole;
    int before = outlet_hello_read((struct span){(const char *)data, first}, &part);
    int after = outlet_hello_read((struct span){(const char *)data, size}, &whole);
    assert(before == 0 || before == after);
    assert(before != 1 || strcmp(part.name, whole.name) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct client whole, cut;
    if (size < 1)
        return 0;
    size_t first = data[0] * (size - 1) / 256;
    client_open(&whole);
    client_open(&cut);
    feed(&whole, data + 1, size - 1);
    feed(&cut, data + 1, first);
    feed(&cut, data + 1 + first, size - 1 - first);
    assert(whole.request.whole == cut.request.whole);
    if (whole.request.whole) {
        assert(strcmp(whole.request.host, cut.request.host) == 0 && whole.request.port == cut.request.port);
        assert(whole.last < 0 || (whole.body == cut.body && cut.last >= 0));
        check_head(&whole.request);
    }
    client_close(&whole);
    client_close(&cut);
    check_hello(data + 1, size - 1, first);
    return 0;
}
