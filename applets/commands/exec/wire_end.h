/* Sockets at the ends of streams: what is connected to from inside of the target, and what listens there. */
#ifndef EXEC_WIRE_END_H
#define EXEC_WIRE_END_H

#include "ends.h"

extern const struct end_kind connect_end; /* a string, as of dial.h: to a connection there */
extern const struct end_kind
    listen_end; /* the same: says 32 bits, 0 when it listens, then the number of each who comes */
extern const struct end_kind accept_end; /* such a number: to that connection */

#endif
