/* What every connection of an HTTP server of ours has, whoever answers over it: its socket, the request that
 * is being read, what was sent ahead, its place in the server's list. Embedded as first member. */
#ifndef RPC_HTTP_FRAME_H
#define RPC_HTTP_FRAME_H

#include <stdbool.h>
#include <sys/types.h>

#include "http_parse.h"
#include "loop.h"

#define HTTP_AHEAD_MAX 65536 /* bytes kept of what a client sends ahead while its request is open */
#define HTTP_LINGER_MS 2000  /* for a client whose request was refused to notice and close */

struct http_frame {
    struct http_frame *next, **link;
    int fd;
    struct loop_source *source; /* begins with LOOP_READ */
    struct loop_source *timer;
    bool closed;
    bool last; /* no request is read after the next answer */
    struct http_parser parser;
    struct buf input; /* what came behind the request that is being answered */
};

/* Takes fd (non-blocking) and a parser that was begun. */
void http_frame_open(struct http_frame *f, struct http_frame **list, struct loop *loop, int fd,
                     void (*on_event)(void *arg, int events), void *arg);

/* Everything but the memory, which whoever is at work with it needs until he is done. False: it was before.
 */
bool http_frame_close(struct http_frame *f);

/* What has come: > 0 bytes at *data, until the next call; 0: the client has closed its side; -1: it is gone;
 * HTTP_FRAME_NOTHING: nothing for the moment. */
enum { HTTP_FRAME_NOTHING = -2 };
ssize_t http_frame_read(struct http_frame *f, const char **data);

/* http_parse, and a client that waits for it is told to go on. */
size_t http_frame_parse(struct http_frame *f, const char *data, size_t n);

/* After a send that gave n: the client is gone, and not just slow. */
bool http_frame_lost(ssize_t n);

/* The reason phrase of a status. */
const char *http_reason(int status);

#endif
