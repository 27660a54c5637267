/* A provider, or a gateway to some, to which requests are passed on as they are: its answers, streams too, go
 * back as they come. */
#ifndef APPLETS_MODEL_PROXY_UPSTREAM_H
#define APPLETS_MODEL_PROXY_UPSTREAM_H

#include "proxy_calls.h"
#include "host/release/fetch_url.h"
#include "limits.h"

struct upstream {
    struct fetch_url url;
    bool versioned; /* its path names one */
    char *key;      /* NULL: none */
};

/* Passes a request on when there is a slot. */
void upstream_pass(const struct upstream *upstream, struct loop *loop, struct slots *slots,
                   const struct proxy_asked *asked, const struct proxy_request *request);

/* In a process of its own (upstream_ask.c): asks, and writes what comes of it to `out`, as frames: a letter,
 * a length in four bytes, so many bytes. */
enum {
    UPSTREAM_HEAD = 'H',
    UPSTREAM_BODY = 'B',
    UPSTREAM_END = 'Z',
    UPSTREAM_FAILED = 'E',
    UPSTREAM_PREFIX = 5
};
_Noreturn void upstream_ask(const struct fetch_url *url, struct span request, int out);

#endif
