/* An incremental parser of one HTTP/1.x response (RFC 9112) to a GET or POST, for a client that stores the
 * body.
 *
 * Fed whatever came, in pieces of any size; it keeps the head alone and hands the body on. It touches no
 * descriptor, and what it is fed may be anything. What isn't body is bounded in proportion to it: interim
 * answers, chunk sizes with their extensions, trailers. */
#ifndef RPC_HTTP_RESPONSE_H
#define RPC_HTTP_RESPONSE_H

#include <stdbool.h>
#include <stddef.h>

#include "buf.h"
#include "err.h"

#define HTTP_RESPONSE_HEAD_MAX 32768

enum http_response_state {
    RESPONSE_HEAD,
    RESPONSE_BODY,
    RESPONSE_CHUNK_SIZE,
    RESPONSE_CHUNK,
    RESPONSE_CHUNK_END,
    RESPONSE_TRAILERS,
    RESPONSE_COMPLETE
};

struct http_response {
    /* Known once the head is there (the state is behind RESPONSE_HEAD). */
    int status;
    bool has_length; /* of the body, as it is sent */
    unsigned long long length;
    bool has_range; /* of a 206: where the body's bytes belong */
    unsigned long long range_start;
    struct buf location; /* of a redirect; empty: none */

    /* Gets the body's bytes, for a status other than 2xx only where `any`. May be NULL; -1 with err ends the
     * parsing. */
    int (*body)(void *arg, const char *data, size_t n, struct err *err);
    void (*field)(void *arg, const char *name, const char *value); /* each line of the head; may be NULL */
    bool any;
    void *arg;

    enum http_response_state state;
    struct buf head; /* or the line of chunked coding that is being read */
    bool chunked;
    unsigned long long left; /* of the body or chunk */
    size_t spare; /* bytes that are neither the head nor the body which may still come; a body earns more */
};

void http_response_init(struct http_response *r);
void http_response_release(struct http_response *r);

/* Takes bytes; what comes behind a complete response is ignored. -1 with ERR_TOOL when that is no response.
 */
int http_response_feed(struct http_response *r, const char *data, size_t n, struct err *err);

/* The peer has closed in good order. -1 with ERR_TOOL when something is missing. */
int http_response_end(struct http_response *r, struct err *err);

#endif
