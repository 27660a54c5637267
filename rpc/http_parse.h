/* An incremental parser of HTTP/1.x requests (RFC 9112): for POST / with a body and nothing else, or for any
 * method and path.
 *
 * It is fed whatever came, in pieces of any size, and keeps of the head no more than the line it is reading.
 * It touches no descriptor. Everything it refuses has a status; a connection ends after that. */
#ifndef RPC_HTTP_PARSE_H
#define RPC_HTTP_PARSE_H

#include <stdbool.h>
#include <stddef.h>

#include "buf.h"
#include "memory_share.h"

#define HTTP_HEAD_MAX 16384 /* the head of a request; its trailers; a line of chunked coding */
#define HTTP_BODY_MAX (128u << 20)

enum http_state {
    HTTP_REQUEST_LINE,
    HTTP_HEADERS,
    HTTP_BODY, /* with a known length, or of one chunk */
    HTTP_CHUNK_SIZE,
    HTTP_CHUNK_END,
    HTTP_TRAILERS,
    HTTP_COMPLETE, /* the body is there; feeding it takes nothing more */
    HTTP_REFUSED,  /* status says why */
};

/* How far it is. */
struct http_reading {
    struct buf line;
    size_t head; /* bytes of head, trailers or chunk line so far */
    size_t left; /* bytes of body or chunk to come */
    bool any, http10, chunked, has_length, has_host, has_expect;
};

struct http_parser {
    enum http_state state;
    int status;      /* of the refusal, 400 to 505; 0: none */
    bool keep_alive; /* known once complete */
    bool expects;    /* the client waits for "100 Continue" before it sends the body; the caller clears it */
    struct buf body;
    char method[24];   /* with http_parser_init_any */
    struct buf target; /* likewise: path and query, as they were sent; "*" and "" too */
    struct buf
        fields; /* likewise: for each field its name, in small letters, and its value, each with a NUL */

    bool passes; /* set by the owner: it is for another server. Methods that are none of HTTP's own, and
                    a body of any length, which the owner takes away as it comes */

    struct memory_share share; /* of the body: may be less than HTTP_BODY_MAX */
    struct http_reading reading;
};

void http_parser_init(struct http_parser *p);
void http_parser_init_any(
    struct http_parser *p); /* every method and target; no body where none is announced */
void http_parser_release(struct http_parser *p);

/* With http_parser_init_any: the value of a field, the first of its name (in small letters); "" where there
 * is none. */
const char *http_field(const struct http_parser *p, const char *name);
/* The fields in order: start with *name = NULL; false at the end. */
bool http_next_field(const struct http_parser *p, const char **name, const char **value);

/* Takes bytes of one request; returns how many: less than n when the request is complete or refused. */
size_t http_parse(struct http_parser *p, const char *data, size_t n);

#endif
