/* Any bytes, as gzip and as zlib: what is unpacked stays within its bounds. */
#include <assert.h>
#include <stdint.h>

#include "inflate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (int gzip = 0; gzip < 2; gzip++) {
        struct buf out BUF_AUTO;
        buf_init(&out, 1 << 16);
        inflate((const char *)data, size, gzip, &out);
        assert(out.len <= 1 << 16);
    }
    return 0;
}
