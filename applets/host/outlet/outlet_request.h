/* What a client of a proxy asks for: HTTP (CONNECT, or an absolute address), SOCKS 4a or 5. Bytes in, bytes
 * out, without descriptors. */
#ifndef OUTLET_REQUEST_H
#define OUTLET_REQUEST_H

#include "host/outlet/outlet_rules.h"
#include "http_parse.h"
#include "span.h"

enum outlet_how { OUTLET_HTTP, OUTLET_CONNECT, OUTLET_SOCKS4, OUTLET_SOCKS5 };
extern const char *const outlet_hows[];

struct outlet_request {
    enum outlet_how how;
    char host[OUTLET_HOST_MAX]; /* as outlet_host writes it */
    unsigned port;
    struct buf head;         /* of HTTP: what is sent in the place of the one that came */
    struct http_parser body; /* likewise: what comes behind it (outlet_request_body) */
    bool greeted;            /* of SOCKS 5 */
    bool whole;
};

void outlet_request_init(struct outlet_request *r);
void outlet_request_release(struct outlet_request *r);

/* Reads what stands at the front, and answers (appends) what the client waits for. Bytes taken, which may not
 * be the whole request yet; 0: more are needed; -1: nothing can be done, and the answer says why, as `why`
 * does. With a host and port in it HTTP's request is one over a connection that was made to them, and has to
 * be for them. */
long outlet_request_read(struct outlet_request *r, struct span data, struct buf *answer, const char **why);

/* How many of the bytes behind the head belong to the request of HTTP, no more of which are let through; -1:
 * they are wrong. */
long outlet_request_body(struct outlet_request *r, struct span data);

/* The answer to a request that is whole: status as in HTTP. 200: the connection is there, and bytes follow
 * (of OUTLET_HTTP nothing is said then). */
void outlet_answer(const struct outlet_request *r, int status, const char *why, struct buf *answer);

#endif
