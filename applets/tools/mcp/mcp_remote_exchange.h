/* One request of HTTP to a remote MCP server, and what comes of it, passed on as lines on stdout. */
#ifndef APPLETS_MCP_MCP_REMOTE_EXCHANGE_H
#define APPLETS_MCP_MCP_REMOTE_EXCHANGE_H

#include <stdbool.h>
#include <sys/types.h>

#include "buf.h"
#include "err.h"
#include "host/release/fetch_url.h"
#include "http_response.h"
#include "span.h"

#define REMOTE_CONNECT_MS 30000
#define REMOTE_LINE_MAX (64u << 20)
#define REMOTE_SHORT 256

struct tls;

/* What all processes know. */
struct remote {
    struct fetch_url url;
    struct buf headers;
    char session[REMOTE_SHORT], revision[32]; /* "": none */
    bool old;             /* 2024-11-05: answers come by the stream that was asked for first */
    bool asked, answered; /* anything at all */
    int lock;             /* a file; -1: none can be had */
    int askers;
    pid_t listener;
};

/* One exchange. */
struct remote_exchange {
    struct remote *remote;
    struct http_response response;
    struct tls *tls;
    int fd;
    bool events, keeps; /* the body is a stream of them; the head is to be remembered */
    bool said;          /* an answer was passed on */
    struct buf line, data, body;
    char event[32], last_id[REMOTE_SHORT];
    int endpoint; /* where the address goes that an old server tells; -1: nowhere */
};

void remote_exchange_init(struct remote_exchange *x, struct remote *r);
void remote_exchange_release(struct remote_exchange *x);

/* Asks, and passes on the events of the answer; the rest of it is in x->response and x->body. */
int remote_exchange(struct remote_exchange *x, const char *method, struct span body, struct err *err);

/* Sends a message, and passes on what comes of it. The status; -1 with err. */
int remote_post(struct remote_exchange *x, struct span message, struct err *err);

/* Answers a request with an error of ours. */
void remote_say_error(const struct remote *r, struct span id, const char *why);

#endif
