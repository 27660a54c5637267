/* What stands behind a program, and lists of sums: whatever the bytes, only what is in them is told. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "host/release/release_record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int is_inside(struct span inner, struct span outer)
{
    return inner.s >= outer.s && inner.s + inner.n <= outer.s + outer.n;
}

static void walk_sums(struct span text)
{
    struct span rest = text;
    struct sum sum;
    size_t lines = 0;
    while (sums_next(&rest, &sum) > 0) {
        if (!is_inside(sum.name, text) || sum.name.n == 0 || memchr(sum.name.s, '/', sum.name.n) ||
            strlen(sum.sha256) != SHA256_HEX_SIZE - 1)
            abort();
        lines++;
    }
    char hex[SHA256_HEX_SIZE];
    if (sums_find(text, "toolbox-0.1.0-linux-arm64", hex) && lines == 0)
        abort();
}

static void walk_pack(struct span text)
{
    struct span rest = text;
    struct packed packed;
    while (pack_next(&rest, &packed) > 0)
        if (!is_inside(packed.name, text) || packed.size == 0)
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span text = {(const char *)data, size};
    static const char *const kinds[] = {"sums", "pack"};
    for (int i = 0; i < 2; i++) {
        struct span lines = record_lines(text, kinds[i]);
        if (lines.s && (!is_inside(lines, text) || lines.n + RECORD_MARK_SIZE != record_size(text, kinds[i])))
            abort();
        if (lines.s) {
            walk_sums(lines);
            walk_pack(lines);
        }
    }
    walk_sums(text);
    walk_pack(text);
    return 0;
}
