/* Signatures that openssl made once, and what is near them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "signature.h"

static const char pem[] = "-----BEGIN PUBLIC KEY-----\n"
                          "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEhqEM+aS7uZAlzkR/C1dPEi4rxZ+9\n"
                          "pb7MdJEQpE5G/Og7nCXx5fEID+sybFM2dz17jvh0nBYBSK5DipwYN1cTZQ==\n"
                          "-----END PUBLIC KEY-----\n";
static const char base64[] = "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEhqEM+aS7uZAlzkR/C1dPEi4rxZ+9pb7MdJEQpE5G/"
                             "Og7nCXx5fEID+sybFM2dz17jvh0nBYBSK5DipwYN1cTZQ==";
static const char other_curve[] = "-----BEGIN PUBLIC KEY-----\n"
                                  "MHYwEAYHKoZIzj0CAQYFK4EEACIDYgAEX+8cZkHuI330hNYuSZ9inBtfEA1h9Xh5\n"
                                  "rs7WlOiZgGl4nkc7UEKMoeM/BcWkc191XxGcKrVNkKjezcnzmMds3t7stYtf27L/\n"
                                  "0X4gTgNL7KS6cj0qE7rbLKqpE47F3PVx\n"
                                  "-----END PUBLIC KEY-----\n";
static const char text[] = "what is signed\n";
static const unsigned char der[] = {0x30, 0x44, 0x02, 0x20, 0x09, 0x24, 0x86, 0x27, 0x68, 0x44, 0x68, 0xe1,
                                    0x17, 0xb5, 0xd3, 0xdc, 0x3a, 0x8c, 0x4b, 0x42, 0x2e, 0x19, 0xb5, 0xbd,
                                    0xaa, 0xbc, 0xee, 0xad, 0x1a, 0x6d, 0x32, 0xdc, 0x7f, 0xa0, 0x62, 0xae,
                                    0x02, 0x20, 0x1f, 0xab, 0xd4, 0xc4, 0x23, 0x59, 0xac, 0x73, 0xdc, 0x9f,
                                    0xee, 0x06, 0x63, 0x3a, 0xb5, 0xbe, 0x5f, 0xaf, 0xf1, 0x30, 0x78, 0xf8,
                                    0xea, 0xca, 0x91, 0x66, 0x6c, 0xb5, 0x57, 0xfd, 0x32, 0xf5};
static const unsigned char bare[] = {
    0x09, 0x24, 0x86, 0x27, 0x68, 0x44, 0x68, 0xe1, 0x17, 0xb5, 0xd3, 0xdc, 0x3a, 0x8c, 0x4b, 0x42,
    0x2e, 0x19, 0xb5, 0xbd, 0xaa, 0xbc, 0xee, 0xad, 0x1a, 0x6d, 0x32, 0xdc, 0x7f, 0xa0, 0x62, 0xae,
    0x1f, 0xab, 0xd4, 0xc4, 0x23, 0x59, 0xac, 0x73, 0xdc, 0x9f, 0xee, 0x06, 0x63, 0x3a, 0xb5, 0xbe,
    0x5f, 0xaf, 0xf1, 0x30, 0x78, 0xf8, 0xea, 0xca, 0x91, 0x66, 0x6c, 0xb5, 0x57, 0xfd, 0x32, 0xf5};

static int verify(const char *key, const void *data, size_t n, const void *signature, size_t n_signature)
{
    struct err err;
    return signature_verify(key, data, n, signature, n_signature, &err);
}

static void good_ones(void **state)
{
    (void)state;
    assert_int_equal(verify(pem, text, sizeof text - 1, der, sizeof der), 0);
    assert_int_equal(verify(base64, text, sizeof text - 1, der, sizeof der), 0);
    assert_int_equal(verify(pem, text, sizeof text - 1, bare, sizeof bare), 0);
}

static void changed_ones(void **state)
{
    (void)state;
    unsigned char changed[sizeof der + 1];
    assert_int_equal(verify(pem, text, sizeof text, der, sizeof der), -1);
    assert_int_equal(verify(pem, "", 0, der, sizeof der), -1);
    for (size_t i = 0; i < sizeof der; i++) {
        memcpy(changed, der, sizeof der);
        changed[i] ^= 1;
        assert_int_equal(verify(pem, text, sizeof text - 1, changed, sizeof der), -1);
        assert_int_equal(verify(pem, text, sizeof text - 1, der, i), -1);
    }
    memcpy(changed, der, sizeof der);
    changed[sizeof der] = 0;
    assert_int_equal(verify(pem, text, sizeof text - 1, changed, sizeof changed), -1);
    for (size_t i = 0; i < sizeof bare; i++) {
        memcpy(changed, bare, sizeof bare);
        changed[i] ^= 0x80;
        assert_int_equal(verify(pem, text, sizeof text - 1, changed, sizeof bare), -1);
    }
}

/* Zero and the order of the group: what a careless check takes for a signature of everything. */
static void special_numbers(void **state)
{
    (void)state;
    static const unsigned char order[] = {0xff, 0xff, 0xff, 0xff, 0,    0,    0,    0,    0xff, 0xff, 0xff,
                                          0xff, 0xff, 0xff, 0xff, 0xff, 0xbc, 0xe6, 0xfa, 0xad, 0xa7, 0x17,
                                          0x9e, 0x84, 0xf3, 0xb9, 0xca, 0xc2, 0xfc, 0x63, 0x25, 0x51};
    unsigned char s[64] = {0};
    assert_int_equal(verify(pem, text, sizeof text - 1, s, sizeof s), -1);
    memcpy(s, order, 32);
    memcpy(s + 32, order, 32);
    assert_int_equal(verify(pem, text, sizeof text - 1, s, sizeof s), -1);
    assert_int_equal(verify(pem, text, sizeof text - 1, "\x30\x06\x02\x01\x00\x02\x01\x00", 8), -1);
    assert_int_equal(verify(pem, text, sizeof text - 1, "", 0), -1);
}

static void keys_that_are_none(void **state)
{
    (void)state;
    struct err err;
    assert_int_equal(signature_verify(other_curve, text, sizeof text - 1, der, sizeof der, &err), -1);
    assert_non_null(strstr(err.msg, "another kind"));
    static const char *const none[] = {"", "x", "-----BEGIN PUBLIC KEY-----\n",
                                       "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        assert_int_equal(signature_verify(none[i], text, sizeof text - 1, der, sizeof der, &err), -1);
        assert_non_null(strstr(err.msg, "no public key"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_ones),
        cmocka_unit_test(changed_ones),
        cmocka_unit_test(special_numbers),
        cmocka_unit_test(keys_that_are_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
