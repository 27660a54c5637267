/* The bytes between a socket and a stream (rpc/mux.h), on either side: as they come, each direction with its
 * own end, and no more than windows allow. */
#ifndef EXEC_WIRE_H
#define EXEC_WIRE_H

#include "loop.h"
#include "mux.h"

struct wire_owner {
    struct loop *loop;
    size_t (*room)(const struct mux_stream *s); /* bytes that may be sent on a stream now */
    void (*said)(void);                         /* after something was said */
};

struct wire;

/* The descriptor, which doesn't block and may still be connecting, is taken. */
struct wire *wire_new(const struct wire_owner *owner, struct mux_stream *s, int fd);
/* For the stream's owner, who hands on what the stream is told. */
bool wire_received(struct wire *w, struct span data); /* false: it has failed, and the stream was closed */
void wire_ended(struct wire *w);
void wire_say(struct wire *w, struct span data); /* in front of what comes: ours, not of the stream */
void wire_wait(struct wire *w);
/* When the stream has closed; `whole`: both directions came to their end. */
void wire_free(struct wire *w, bool whole);

#endif
