/* Sockets at the end of a stream: what is connected to from inside of the target, and what listens there. */
#ifndef EXEC_WIRE_END_H
#define EXEC_WIRE_END_H

#include "ends.h"

extern const struct end_kind connect_end; /* "HOST:PORT" or a path: the other end of a connection to there */

#endif
