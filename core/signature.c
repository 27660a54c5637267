#include "signature.h"

#include <mbedtls/asn1.h>
#include <mbedtls/ecdsa.h>
#include <mbedtls/pk.h>
#include <mbedtls/sha256.h>

#include "mem.h"

enum { NUMBER = 32, BARE = 2 * NUMBER };

static int read_key(mbedtls_pk_context *pk, const char *key, struct err *err)
{
    static const char begin[] = "-----BEGIN PUBLIC KEY-----\n", end[] = "\n-----END PUBLIC KEY-----\n";
    char *pem MEM_AUTO = strstr(key, "-----BEGIN") ? mem_strdup(key) : mem_printf("%s%s%s", begin, key, end);
    if (mbedtls_pk_parse_public_key(pk, (const unsigned char *)pem, strlen(pem) + 1) != 0)
        return err_set(err, ERR_TOOL, "the key is no public key in PEM");
    const mbedtls_ecp_keypair *pair = mbedtls_pk_can_do(pk, MBEDTLS_PK_ECDSA) ? mbedtls_pk_ec(*pk) : NULL;
    if (!pair || pair->MBEDTLS_PRIVATE(grp).id != MBEDTLS_ECP_DP_SECP256R1)
        return err_set(err, ERR_TOOL, "the key is of another kind than ECDSA P-256");
    return 0;
}

/* The two numbers of a signature, nothing behind them. */
static int read_numbers(const unsigned char *at, size_t n, mbedtls_mpi *r, mbedtls_mpi *s)
{
    unsigned char *p = (unsigned char *)at; /* the parser moves it, and writes to nothing */
    const unsigned char *end = at + n;
    size_t inside;
    if (n == BARE)
        return mbedtls_mpi_read_binary(r, at, NUMBER) | mbedtls_mpi_read_binary(s, at + NUMBER, NUMBER);
    if (mbedtls_asn1_get_tag(&p, end, &inside, MBEDTLS_ASN1_CONSTRUCTED | MBEDTLS_ASN1_SEQUENCE) != 0 ||
        p + inside != end || mbedtls_asn1_get_mpi(&p, end, r) != 0 || mbedtls_asn1_get_mpi(&p, end, s) != 0)
        return -1;
    return p == end ? 0 : -1;
}

int signature_verify(const char *key, const void *data, size_t n, const void *signature, size_t n_signature,
                     struct err *err)
{
    unsigned char digest[32];
    mbedtls_pk_context pk;
    mbedtls_mpi r, s;
    mbedtls_pk_init(&pk);
    mbedtls_mpi_init(&r);
    mbedtls_mpi_init(&s);
    int result = read_key(&pk, key, err);
    if (result == 0) {
        mbedtls_ecp_keypair *ec = mbedtls_pk_ec(pk);
        mbedtls_sha256(data, n, digest, 0);
        if (read_numbers(signature, n_signature, &r, &s) != 0 ||
            mbedtls_ecdsa_verify(&ec->MBEDTLS_PRIVATE(grp), digest, sizeof digest, &ec->MBEDTLS_PRIVATE(Q),
                                 &r, &s) != 0)
            result = err_set(err, ERR_TOOL,
                             "the signature isn't one by this key, or what was signed has been changed");
    }
    mbedtls_mpi_free(&r);
    mbedtls_mpi_free(&s);
    mbedtls_pk_free(&pk);
    return result;
}
