/* TLS in front of HTTP: what clients say by it goes in the clear through a pair of sockets within this
 * process, and so do the answers. */
#ifndef APPLETS_MCP_SERVE_SERVE_TLS_H
#define APPLETS_MCP_SERVE_SERVE_TLS_H

#include "commands/model_proxy/proxy_http.h"
#include "tls_server.h"

struct tls_door;

/* Takes listen_fd; its clients become those of `http`. `server` is shared, and stays the caller's. */
struct tls_door *tls_door_new(struct loop *loop, int listen_fd, struct tls_server *server,
                              struct proxy_server *http);
void tls_door_free(struct tls_door *d); /* NULL is fine */

#endif
