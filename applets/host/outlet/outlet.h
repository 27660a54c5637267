/* A proxy on the host for who connects in a target (`toolbox forward -D`): each client is a stream
 * (rpc/mux.h), and what it asks for (outlet_request.h) is looked up, connected to and let through here. With
 * rules (outlet_rules.h) only what they name is, and each decision is a line of JSON on stderr:
 *
 *   - a name that isn't named isn't looked up; one that is, once: what was found is checked, and connected
 * to;
 *   - port 443 is TLS, whose own name has to be the one that was asked for, as on any port where TLS is
 * spoken;
 *   - port 80 is HTTP for that host, one request for each connection. */
#ifndef OUTLET_H
#define OUTLET_H

#include "commands/exec/wire.h"
#include "host/outlet/outlet_rules.h"

struct outlet {
    const struct outlet_rules *rules; /* NULL: everything is let through */
    const struct wire_owner *wires;
    const char *target; /* for the lines */
};

struct outlet_client;

struct outlet_client *outlet_client_new(const struct outlet *outlet, struct mux_stream *s);
/* For the stream's owner, who hands on what it is told. */
void outlet_received(struct outlet_client *c, struct span data);
void outlet_ended(struct outlet_client *c);
void outlet_wait(struct outlet_client *c);
void outlet_closed(struct outlet_client *c, bool whole);

#endif
