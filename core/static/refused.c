/* What of mbedtls a client never calls that has no certificate of its own, but that its tables name: to sign,
 * to decrypt, to read and write private keys. The linker (--wrap) leads each of these to one function that
 * fails, and drops 11 KB. */

/* The numbers of mbedtls and of PSA for "not supported" differ; any below zero is an error for both. */
int refused(void);
int refused(void)
{
    return -134;
}

#define REFUSE(name) int __wrap_##name(void) __attribute__((alias("refused")));

REFUSE(mbedtls_ecdsa_sign)
REFUSE(mbedtls_pk_psa_rsa_sign_ext)
REFUSE(mbedtls_pk_sign_ext)
REFUSE(mbedtls_pk_sign_restartable)
REFUSE(mbedtls_psa_ecdsa_sign_hash)
REFUSE(mbedtls_psa_rsa_sign_hash)
REFUSE(mbedtls_rsa_check_pub_priv)
REFUSE(mbedtls_rsa_check_privkey)
REFUSE(mbedtls_rsa_parse_key)
REFUSE(mbedtls_rsa_pkcs1_sign)
REFUSE(mbedtls_rsa_rsassa_pss_sign)
REFUSE(mbedtls_rsa_write_key)
REFUSE(mbedtls_ssl_tls13_write_certificate_verify)
REFUSE(psa_asymmetric_decrypt)
REFUSE(psa_asymmetric_encrypt)
REFUSE(psa_sign_hash)
