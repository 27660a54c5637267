#include "sha256.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include <mbedtls/sha256.h>

#include "mem.h"

/* mbedtls' status is only about alternative implementations, which the configuration has none of. */
static void finish(mbedtls_sha256_context *hash, char hex[SHA256_HEX_SIZE])
{
    static const char digits[] = "0123456789abcdef";
    unsigned char sum[32];
    mbedtls_sha256_finish(hash, sum);
    mbedtls_sha256_free(hash);
    for (size_t i = 0; i < sizeof sum; i++) {
        hex[2 * i] = digits[sum[i] >> 4];
        hex[2 * i + 1] = digits[sum[i] & 15];
    }
    hex[SHA256_HEX_SIZE - 1] = '\0';
}

int sha256_file(int fd, char hex[SHA256_HEX_SIZE])
{
    unsigned char chunk[4096]; /* a server does this once: it stays resident */
    mbedtls_sha256_context hash;
    mbedtls_sha256_init(&hash);
    mbedtls_sha256_starts(&hash, 0);
    for (;;) {
        ssize_t n = read(fd, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        if (n == 0)
            break;
        mbedtls_sha256_update(&hash, chunk, (size_t)n);
    }
    finish(&hash, hex);
    return 0;
}

void sha256_hex(const void *data, size_t n, char hex[SHA256_HEX_SIZE])
{
    mbedtls_sha256_context hash;
    mbedtls_sha256_init(&hash);
    mbedtls_sha256_starts(&hash, 0);
    mbedtls_sha256_update(&hash, data, n);
    finish(&hash, hex);
}

struct sha256 {
    mbedtls_sha256_context hash;
};

struct sha256 *sha256_begin(void)
{
    struct sha256 *sum = mem_alloc(sizeof *sum);
    mbedtls_sha256_init(&sum->hash);
    mbedtls_sha256_starts(&sum->hash, 0);
    return sum;
}

void sha256_add(struct sha256 *sum, const void *data, size_t n)
{
    mbedtls_sha256_update(&sum->hash, data, n);
}

void sha256_end(struct sha256 *sum, char hex[SHA256_HEX_SIZE])
{
    finish(&sum->hash, hex);
    free(sum);
}
