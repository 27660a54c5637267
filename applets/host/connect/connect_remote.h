/* The stream to a target that a connection keeps: the runtime's program, with `exec --stream` there on its
 * stdin and stdout. */
#ifndef CONNECT_REMOTE_H
#define CONNECT_REMOTE_H

#include "err.h"
#include "loop.h"
#include "stream_client.h"

struct connect_remote_owner {
    struct stream_client_owner stream;
    void (*heard)(void);         /* something was taken */
    void (*stalls)(bool stalls); /* the target takes no more for now, or does again */
    /* It has ended; no more is called, and it is still to be freed. */
    void (*ended)(const char *why);
};

struct connect_remote;

struct connect_remote *connect_remote_start(struct loop *loop, char *const *command,
                                            const struct connect_remote_owner *owner, struct err *err);
struct stream_client *connect_remote_stream(struct connect_remote *r);
/* What the runtime has said on stderr, fit to be shown. */
const char *connect_remote_said(const struct connect_remote *r);
void connect_remote_flush(struct connect_remote *r);
void connect_remote_tick(struct connect_remote *r); /* each STREAM_TICK_MS */
/* The runtime has a moment to end. */
void connect_remote_free(struct connect_remote *r);

#endif
