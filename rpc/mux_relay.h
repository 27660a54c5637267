/* Byte streams (mux.h) of many clients over one connection: only their numbers are changed, and windows hold
 * from end to end. It knows neither descriptors nor clocks. */
#ifndef RPC_MUX_RELAY_H
#define RPC_MUX_RELAY_H

#include <stdbool.h>

#include "mux.h"

struct mux_relay;

/* far: what goes to the side that takes streams. near: what goes to a client. */
struct mux_relay *mux_relay_new(struct buf *far, struct buf *(*near)(void *client));
void mux_relay_free(struct mux_relay *r);

void mux_relay_from_client(struct mux_relay *r, void *client, const struct mux_frame *f);
void mux_relay_from_far(struct mux_relay *r, const struct mux_frame *f);
/* A client has gone: its streams are reset. */
void mux_relay_forget(struct mux_relay *r, const void *client);
bool mux_relay_is_used(const struct mux_relay *r);

#endif
