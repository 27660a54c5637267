/* Any bytes as what a program writes to a terminal: what comes out is plain text, and the same however the
 * input is cut into pieces. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "term_filter.h"
#include "utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_plain(const struct buf *out)
{
    const unsigned char *s = (const unsigned char *)buf_str(out);
    for (size_t i = 0; i < out->len; i++) {
        if ((s[i] < 0x20 && s[i] != '\t' && s[i] != '\n' && s[i] != '\r') || s[i] == 0x7F)
            abort();
        if (s[i] == 0xC2 && s[i + 1] < 0xA0) /* C1 */
            abort();
    }
    if (!utf8_is_valid(buf_str(out), out->len))
        abort();
}

/* Pieces of `step` bytes, the first of `first`. Each in a block of its own size, so that no byte beyond is
 * read. */
static void check_cut(const char *s, size_t n, size_t first, size_t step, const struct buf *whole)
{
    struct buf out BUF_AUTO = BUF_INIT;
    struct term_filter f = {0};
    for (size_t at = 0, len = first; at < n; at += len, len = step) {
        len = len < n - at ? len : n - at;
        char *piece = malloc(len);
        memcpy(piece, s + at, len);
        term_filter_feed(&f, piece, len, &out);
        free(piece);
    }
    if (out.len != whole->len || memcmp(buf_str(&out), buf_str(whole), out.len) != 0)
        abort();
    term_filter_reset(&f, &out);
    check_plain(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf whole BUF_AUTO = BUF_INIT;
    struct term_filter f = {0};
    const char *s = (const char *)data;
    term_filter_feed(&f, s, size, &whole);
    check_plain(&whole);
    if (whole.len > 3 * size)
        abort();
    for (size_t step = 1; step <= 5; step++)
        check_cut(s, size, 1, step, &whole);
    for (size_t first = 1; first < size && first < 64; first++)
        check_cut(s, size, first, size, &whole);
    return 0;
}
