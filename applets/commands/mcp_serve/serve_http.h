/* Any number of clients over HTTP, by the protocol's "Streamable HTTP": each has a session, with shells and
 * jobs of its own, and all are served on one loop. */
#ifndef APPLETS_MCP_SERVE_SERVE_HTTP_H
#define APPLETS_MCP_SERVE_SERVE_HTTP_H

#include "json.h"
#include "serve.h"
#include "serve_far.h"
#include "tls_server.h"

#define SERVE_DOORS_MAX 8

struct serve_http_options {
    const char *where[SERVE_DOORS_MAX]; /* [ADDRESS:]PORT or unix:PATH */
    size_t n;
    char *token;                 /* NULL: none is asked for */
    struct tls_files tls;        /* cert NULL: none is spoken; on unix sockets never */
    bool share;                  /* one set of shells and jobs for all */
    const struct serve_far *far; /* targets that are served, at /mcp/TARGET; NULL: where we are, at /mcp */
    long long idle_ms;           /* after which a session that nobody uses is ended */
};

/* Serves until it is told to end; an exit status. */
int serve_http(const struct serve_http_options *o, const struct serve_offer *offer);

#endif
