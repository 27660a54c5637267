/* Any bytes, as gzip, as zlib and as zstd: what is unpacked stays within its bounds. */
#include <assert.h>
#include <stdint.h>

#include "unzstd.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (int kind = 0; kind < 3; kind++) {
        struct buf out BUF_AUTO;
        buf_init(&out, 1 << 16);
        if (kind == 2)
            unzstd((const char *)data, size, &out);
        else
            inflate((const char *)data, size, kind == 1, &out);
        assert(out.len <= 1 << 16);
    }
    return 0;
}
