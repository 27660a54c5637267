#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "unzstd.h"

static const char text[] = "hello hello hello hello hello hello\n";
static const unsigned char frame[] = {0x28, 0xb5, 0x2f, 0xfd, 0x04, 0x58, 0x6d, 0x00, 0x00,
                                      0x38, 0x68, 0x65, 0x6c, 0x6c, 0x6f, 0x20, 0x0a, 0x01,
                                      0x00, 0xb9, 0x4b, 0x11, 0x6b, 0x1f, 0x08, 0x67};

static int unpack(const void *data, size_t n, size_t max, struct buf *out)
{
    buf_init(out, max);
    return unzstd(data, n, out);
}

static void unpacks(void **state)
{
    struct buf out;
    unsigned char twice[2 * sizeof frame];
    (void)state;
    assert_int_equal(unpack(frame, sizeof frame, sizeof text - 1, &out), 0);
    assert_string_equal(buf_str(&out), text);
    buf_release(&out);
    memcpy(twice, frame, sizeof frame);
    memcpy(twice + sizeof frame, frame, sizeof frame);
    assert_int_equal(unpack(twice, sizeof twice, 1000, &out), 0);
    assert_int_equal(out.len, 2 * (sizeof text - 1));
    buf_release(&out);
}

static void refuses(void **state)
{
    struct buf out;
    (void)state;
    for (size_t n = 0; n < sizeof frame; n++) {
        assert_int_equal(unpack(frame, n, 1000, &out), INFLATE_BROKEN);
        buf_release(&out);
    }
    for (size_t max = 0; max < sizeof text - 1; max++) {
        assert_int_equal(unpack(frame, sizeof frame, max, &out), INFLATE_TOO_MUCH);
        assert_true(out.len <= max);
        buf_release(&out);
    }
}

static void refuses_what_is_broken(void **state)
{
    struct buf out;
    unsigned char broken[sizeof frame];
    (void)state;
    memcpy(broken, frame, sizeof frame);
    broken[sizeof frame - 1]++; /* the sum */
    assert_int_equal(unpack(broken, sizeof broken, 1000, &out), INFLATE_BROKEN);
    buf_release(&out);
    broken[5] = 0xa8; /* a window of two gigabytes */
    assert_int_equal(unpack(broken, sizeof broken, 1000, &out), INFLATE_TOO_MUCH);
    buf_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(unpacks), cmocka_unit_test(refuses),
                                       cmocka_unit_test(refuses_what_is_broken)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
