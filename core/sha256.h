/* SHA-256, as 64 lower-case hexadecimal digits and a NUL. */
#ifndef CORE_SHA256_H
#define CORE_SHA256_H

#include <stddef.h>

#define SHA256_HEX_SIZE 65

/* Digest of what a descriptor has from its position to its end; nothing is kept in memory. 0, or -1 with
 * errno. */
int sha256_file(int fd, char hex[SHA256_HEX_SIZE]);

void sha256_hex(const void *data, size_t n, char hex[SHA256_HEX_SIZE]);

/* For what comes in pieces: sha256_end gives the digest, and frees it. */
struct sha256;
struct sha256 *sha256_begin(void);
void sha256_add(struct sha256 *sum, const void *data, size_t n);
void sha256_end(struct sha256 *sum, char hex[SHA256_HEX_SIZE]);

#endif
