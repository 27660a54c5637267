/*
 * What of mbedtls goes into the binary: SHA-256 in portable C, and nothing else.
 * Hardware acceleration is left out: probe hashes one small file, once.
 */
#ifndef TOOLBOX_MBEDTLS_CONFIG_H
#define TOOLBOX_MBEDTLS_CONFIG_H

#define MBEDTLS_SHA256_C

#endif
