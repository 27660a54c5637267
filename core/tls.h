/* The client's side of TLS 1.2 and 1.3. The peer's certificate has to be valid now, for
 * the host, and vouched for by the trust store: there is no way to do without. */
#ifndef CORE_TLS_H
#define CORE_TLS_H

#include <sys/types.h>

#include "err.h"

struct tls;

/* Behind code_unpack(CODE_tls), as all of this. Connects to a host (a name, or an address without brackets)
 * and port. `trust`: a file of certificates (PEM or DER); NULL: $SSL_CERT_FILE, else the system's. NULL with
 * ERR_TOOL. No step waits longer than timeout_ms for the peer, and the handshake as a whole neither. */
struct tls *tls_open(const char *host, const char *port, const char *trust, int timeout_ms, struct err *err);

/* From now on no step waits longer than that. */
void tls_timeout(struct tls *t, int ms);

/* Bytes read, or 0 at the peer's own end of the stream; -1 with ERR_TOOL, also when the connection is cut. */
ssize_t tls_read(struct tls *t, void *out, size_t n, struct err *err);

/* Writes all of it. 0, or -1 with ERR_TOOL. */
int tls_write(struct tls *t, const void *data, size_t n, struct err *err);

void tls_close(struct tls *t); /* NULL is fine */

#endif
