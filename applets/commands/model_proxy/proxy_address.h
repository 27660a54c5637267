/* What a socket that listens is called, and who gets to it. */
#ifndef APPLETS_MODEL_PROXY_PROXY_ADDRESS_H
#define APPLETS_MODEL_PROXY_PROXY_ADDRESS_H

#include <stdbool.h>

#include "buf.h"

/* Where a socket listens: unix:PATH or http://HOST:PORT. */
void proxy_put_address(int fd, struct buf *out);
/* Whether none but programs of this machine get to it. */
bool proxy_is_local(int fd);

#endif
