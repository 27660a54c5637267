/* A session of a name, for clients that begin a connection for every call: what serves it is a job of the
 * server of sessions, which each connection hands its standard input and output to. */
#ifndef APPLETS_MCP_SERVE_SERVE_NAMED_H
#define APPLETS_MCP_SERVE_SERVE_NAMED_H

#include "serve.h"

/* In the process that a client has started: joins the session, or begins it by the same words, until one of
 * both ends. An exit status. */
int serve_named_join(const char *name, int argc, char **argv);

/* Whether this process is to serve one, which it is told once. */
bool serve_named_is_held(void);
int serve_named_hold(const struct serve_offer *offer, long long idle_ms);

#endif
