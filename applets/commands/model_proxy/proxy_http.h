/* The HTTP/1.1 server of the proxy: any method and path, answers at once, later or as a stream.
 *
 * One request at a time and connection, keep-alive, what is sent ahead waits. A client that closes, or its
 * side of it, before its answer is complete has gone. A stream is made as fast as it is read. */
#ifndef APPLETS_MODEL_PROXY_PROXY_HTTP_H
#define APPLETS_MODEL_PROXY_PROXY_HTTP_H

#include "http_parse.h"
#include "json.h"
#include "loop.h"
#include "proxy_events.h"

struct proxy_server;
struct proxy_conn;

struct proxy_request {
    const char *method;
    const char *path;               /* decoded, without the query */
    const char *query;              /* as it was sent, without the question mark; "" where there is none */
    struct span body;               /* until the connection is answered or gone */
    const struct http_parser *head; /* for its fields */
};

/* Answers now (proxy_answer, proxy_stream) or later. */
typedef void (*proxy_handler_fn)(void *arg, struct proxy_conn *conn, const struct proxy_request *request);

/* Takes listen_fd; -1: clients are handed to it. */
struct proxy_server *proxy_server_new(struct loop *loop, int listen_fd, proxy_handler_fn handler, void *arg);
/* One that somebody else has accepted: takes its socket, which doesn't block. */
void proxy_server_take(struct proxy_server *server, int fd);
/* Whether there are descriptors for `n` more, above one that is open, if need be in the place of a client
 * that is silent. */
bool proxy_server_has_room(struct proxy_server *server, int any_fd, int n);
void proxy_server_free(struct proxy_server *server);

/* Who is told when the client goes before its answer is complete; NULL: nobody. Once. */
void proxy_on_gone(struct proxy_conn *conn, void (*gone)(void *arg), void *arg);

/* The whole answer. `fields`: more lines of the head, each with its CRLF. */
void proxy_answer(struct proxy_conn *conn, int status, const char *fields, struct span body);

/* An answer in pieces: begun, given something (any number of times), given the rest. `plan` is taken. */
void proxy_stream(struct proxy_conn *conn, const char *fields);
void proxy_stream_text(struct proxy_conn *conn, struct span text);
void proxy_stream_alive(struct proxy_conn *conn,
                        struct span text); /* which says nothing: nobody else sees it */
void proxy_stream_end(struct proxy_conn *conn, struct events *plan);

/* Who is told when all that was given has been sent, and more may come; NULL: nobody. */
void proxy_on_sent(struct proxy_conn *conn, void (*sent)(void *arg), void *arg);
size_t proxy_unsent(const struct proxy_conn *conn);

/* Who sees the answer: its head (`status`, `fields`), then what it consists of, then the end, which
 * is before the client has all of it: text.s NULL, with `status` 0 where he went before. */
typedef void (*proxy_tap_fn)(void *arg, int status, const char *fields, struct span text);
void proxy_tap(struct proxy_conn *conn, proxy_tap_fn tap, void *arg);

#endif
