/* The server's side of TLS 1.2 and 1.3, for an event loop: nothing waits here.
 *
 * Certificate and key are read again when their files change; connections keep those that they began with. */
#ifndef CORE_TLS_SERVER_H
#define CORE_TLS_SERVER_H

#include <sys/types.h>

#include "err.h"

struct tls_server;
struct tls_peer;

struct tls_files {
    const char *cert; /* its chain, PEM, the server's own first */
    const char *key;  /* PEM, not encrypted */
    const char *ca; /* who vouches for clients, which have to show a certificate then; NULL: they have not */
};

/* Behind code_unpack(CODE_tls), as all of this. The files' names stay. NULL with ERR_TOOL. */
struct tls_server *tls_server_new(const struct tls_files *files, struct err *err);
void tls_server_free(struct tls_server *s);

/* Reads the files again where they have changed. 0, or -1 with ERR_TOOL once for each change: it goes on with
 * what there was. */
int tls_server_refresh(struct tls_server *s, struct err *err);

/* A client at that descriptor, which stays the caller's and doesn't block. NULL: no memory. */
struct tls_peer *tls_peer_new(struct tls_server *s, int fd);
void tls_peer_free(struct tls_peer *p); /* NULL is fine */

/* What has to come before it goes on; the call is made again then, as it was. */
enum { TLS_WANT_READ = -2, TLS_WANT_WRITE = -3 };

/* 0: hands are shaken; -1: it has failed, and there is no more to do. */
int tls_peer_shake(struct tls_peer *p);
/* > 0: bytes; 0: the client has closed its side; -1: it is gone. */
ssize_t tls_peer_read(struct tls_peer *p, void *out, size_t n);
ssize_t tls_peer_write(struct tls_peer *p, const void *data, size_t n);
/* Says that there is no more, if that can be said at once. */
void tls_peer_close(struct tls_peer *p);

#endif
