/* What of mbedtls is never called here, but is named by its tables: to encrypt and decrypt by RSA. The linker
 * (--wrap) leads each of these to one function that fails, and drops what is behind it. */

/* The numbers of mbedtls and of PSA for "not supported" differ; any below zero is an error for both. */
int refused(void);
int refused(void)
{
    return -134;
}

#define REFUSE(name) int __wrap_##name(void) __attribute__((alias("refused")));

REFUSE(psa_asymmetric_decrypt)
REFUSE(psa_asymmetric_encrypt)
