/* Those who share a connection: each has a stream of calls (rpc/stream.h) on a socket of his own. */
#ifndef CONNECT_CLIENTS_H
#define CONNECT_CLIENTS_H

#include "loop.h"
#include "stream.h"

struct connect_clients_owner {
    struct stream_owner stream; /* its `arg` is the client */
    void (*gone)(void *client);
    void (*counted)(void); /* there are more, or fewer */
    void (*went_on)(void); /* something was taken of one, or one has gone */
};

void connect_clients_begin(struct loop *loop, const struct connect_clients_owner *owner);
void connect_clients_take(int fd); /* of one who has come; it is taken */
size_t connect_clients_count(void);
struct buf *connect_clients_out(void *client);
/* After whatever may have made something to say. */
void connect_clients_flush(void);
/* Nothing is taken of them for now, or again. */
void connect_clients_stall(bool stalls);
void connect_clients_tick(void); /* each STREAM_TICK_MS */
/* Tells each why, and which of its calls were open; they are given back. */
void connect_clients_end(const char *why);

#endif
