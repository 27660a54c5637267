/* ECDSA signatures over P-256 with SHA-256, as `openssl dgst -sha256 -sign` makes them. */
#ifndef CORE_SIGNATURE_H
#define CORE_SIGNATURE_H

#include <stddef.h>

#include "err.h"

/* Behind code_unpack(CODE_tls). 0 when `signature` (DER, or the bare two numbers of 32 bytes) is one of the
 * data by the key, a public key in PEM or its base64 alone; else -1 with ERR_TOOL. */
int signature_verify(const char *key, const void *data, size_t n, const void *signature, size_t n_signature,
                     struct err *err);

#endif
