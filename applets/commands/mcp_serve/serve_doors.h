/* Where clients come in by HTTP. */
#ifndef APPLETS_MCP_SERVE_SERVE_DOORS_H
#define APPLETS_MCP_SERVE_SERVE_DOORS_H

#include "serve_http.h"

/* Listens wherever the options say, if that may be. -1: it was said why not. */
int doors_open(const struct serve_http_options *o, int *fds);
bool door_has_tls(const struct serve_http_options *o, size_t i);
/* On stdout. */
void doors_tell(const struct serve_http_options *o, const int *fds);
/* What stays of them in the file system goes; the descriptors are closed. */
void doors_close(const struct serve_http_options *o);

#endif
