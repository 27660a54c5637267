#include "unzstd.h"

#include <stdbool.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "relocate.h"

#define STEP 131072 /* no block comes to more */

static int failed(size_t status)
{
    ZSTD_ErrorCode why = ZSTD_getErrorCode(status);
    return why == ZSTD_error_frameParameter_windowTooLarge || why == ZSTD_error_memory_allocation
               ? INFLATE_TOO_MUCH
               : INFLATE_BROKEN;
}

static int unpack(ZSTD_DCtx *decoder, ZSTD_inBuffer *in, struct buf *out)
{
    for (;;) {
        size_t left = out->max - out->len, read = in->pos;
        size_t room = left < STEP ? left : STEP;
        if (buf_reserve(out, room) < 0)
            return INFLATE_TOO_MUCH;
        ZSTD_outBuffer piece = {out->data ? out->data + out->len : NULL, room, 0};
        size_t status = ZSTD_decompressStream(decoder, &piece, in);
        out->len += piece.pos;
        if (ZSTD_isError(status))
            return failed(status);
        if (status == 0 && in->pos == in->size)
            return buf_add(out, "", 0); /* what a buffer ends with */
        if (piece.pos < room && in->pos == in->size)
            return INFLATE_BROKEN; /* it is cut */
        if (piece.pos == 0 && in->pos == read)
            return room == 0 ? INFLATE_TOO_MUCH : INFLATE_BROKEN;
    }
}

int unzstd(const char *data, size_t n, struct buf *out)
{
    ZSTD_inBuffer in = {data, n, 0};
    if (n == 0 || code_unpack(CODE_zstd, NULL) < 0)
        return INFLATE_BROKEN;
    ZSTD_DCtx *decoder = ZSTD_createDCtx();
    if (!decoder)
        return INFLATE_TOO_MUCH;
    int status = unpack(decoder, &in, out);
    ZSTD_freeDCtx(decoder);
    return status;
}
