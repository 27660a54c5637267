#include "sha256.h"

#include <errno.h>
#include <unistd.h>

#include <mbedtls/sha256.h>

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
    unsigned char chunk[16384];
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
