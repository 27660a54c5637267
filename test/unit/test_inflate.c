#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "inflate.h"
#include "mem.h"

/* "hello hello hello hello\n" by each kind of block. */
static const unsigned char raw[] = {0xcb, 0x48, 0xcd, 0xc9, 0xc9, 0x57, 0xc8, 0x40, 0x27, 0xb9, 0x00};
static const char text[] = "hello hello hello hello\n";
static const char stored[] = "\1\5\0\xfa\xffhello";

static int unpack(const void *data, size_t n, bool gzip, size_t max, char *out)
{
    struct buf b;
    buf_init(&b, max);
    int status = inflate(data, n, gzip, &b);
    memcpy(out, buf_str(&b), b.len + 1);
    buf_release(&b);
    return status;
}

static void unpacks(void **state)
{
    char out[256], zlib[16] = "\x78\x9c";
    (void)state;
    assert_int_equal(unpack(raw, sizeof raw, false, 100, out), 0);
    assert_string_equal(out, text);
    memcpy(zlib + 2, raw, sizeof raw);
    assert_int_equal(unpack(zlib, 2 + sizeof raw, false, 100, out), 0);
    assert_string_equal(out, text);
    assert_int_equal(unpack(stored, sizeof stored - 1, false, 100, out), 0);
    assert_string_equal(out, "hello");
    char gzip[64] = "\x1f\x8b\x08\x18\0\0\0\0\0\3name\0comment";
    memcpy(gzip + 23, raw, sizeof raw);
    gzip[23 + sizeof raw + 4] = (char)(sizeof text - 1);
    size_t n = 23 + sizeof raw + 8;
    assert_int_equal(unpack(gzip, n, true, 100, out), 0);
    assert_string_equal(out, text);
    gzip[n - 4]++; /* the length */
    assert_int_equal(unpack(gzip, n, true, 100, out), INFLATE_BROKEN);
}

static void refuses(void **state)
{
    char out[256];
    (void)state;
    for (size_t n = 0; n < sizeof raw - 1; n++)
        assert_int_equal(unpack(raw, n, false, 100, out), INFLATE_BROKEN);
    for (size_t max = 0; max < sizeof text - 1; max++)
        assert_int_equal(unpack(raw, sizeof raw, false, max, out), INFLATE_TOO_MUCH);
    assert_int_equal(unpack(stored, sizeof stored - 1, false, 4, out), INFLATE_TOO_MUCH);
    assert_int_equal(unpack("\7", 1, false, 100, out), INFLATE_BROKEN); /* no such block */
    assert_int_equal(unpack("\1\5\0\0\0hello", 10, false, 100, out),
                     INFLATE_BROKEN); /* lengths that differ */
    assert_int_equal(unpack("\x4b\x04\x12\0", 4, false, 100, out),
                     INFLATE_BROKEN); /* from before the begin */
    assert_int_equal(unpack("PK\3\4aaaaaaaaaaaaaaaaaa", 22, true, 100, out), INFLATE_BROKEN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(unpacks), cmocka_unit_test(refuses)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
