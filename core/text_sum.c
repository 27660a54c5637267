#include "text_sum.h"

#include <string.h>

static uint64_t word_at(const void *s)
{
    uint64_t w;
    memcpy(&w, s, sizeof w);
    return w;
}

void text_sum_begin(struct text_sum *sum)
{
    *sum = (struct text_sum){.lanes = {0x243F6A8885A308D3ULL, 0x13198A2E03707344ULL, 0xA4093822299F31D0ULL,
                                       0x082EFA98EC4E6C89ULL}};
}

static uint64_t mix(uint64_t h, uint64_t word)
{
    h = (h ^ word) * 0x9E3779B97F4A7C15ULL;
    return h << 29 | h >> 35;
}

/* Lanes that don't wait for each other: files of a hundred megabytes go through here. */
static void add_blocks(struct text_sum *sum, const unsigned char *at, size_t blocks)
{
    uint64_t a = sum->lanes[0], b = sum->lanes[1], c = sum->lanes[2], d = sum->lanes[3];
    for (; blocks > 0; blocks--, at += TEXT_SUM_BLOCK) {
        a = mix(a, word_at(at));
        b = mix(b, word_at(at + 8));
        c = mix(c, word_at(at + 16));
        d = mix(d, word_at(at + 24));
    }
    sum->lanes[0] = a;
    sum->lanes[1] = b;
    sum->lanes[2] = c;
    sum->lanes[3] = d;
}

void text_sum_add(struct text_sum *sum, const void *data, size_t n)
{
    const unsigned char *at = data;
    size_t have = sum->len % TEXT_SUM_BLOCK;
    sum->len += n;
    if (have > 0) {
        size_t fill = n < TEXT_SUM_BLOCK - have ? n : TEXT_SUM_BLOCK - have;
        if (fill > 0)
            memcpy(sum->part + have, at, fill);
        if (have + fill < TEXT_SUM_BLOCK)
            return;
        add_blocks(sum, sum->part, 1);
        at += fill;
        n -= fill;
    }
    add_blocks(sum, at, n / TEXT_SUM_BLOCK);
    if (n % TEXT_SUM_BLOCK > 0)
        memcpy(sum->part, at + n - n % TEXT_SUM_BLOCK, n % TEXT_SUM_BLOCK);
}

uint64_t text_sum_end(struct text_sum *sum)
{
    size_t have = sum->len % TEXT_SUM_BLOCK;
    memset(sum->part + have, 0, TEXT_SUM_BLOCK - have);
    if (have > 0)
        add_blocks(sum, sum->part, 1);
    uint64_t h = mix(0, sum->len);
    for (int i = 0; i < TEXT_SUM_LANES; i++)
        h = mix(h ^ h >> 32, sum->lanes[i]);
    h = mix(h ^ h >> 32, 0);
    return h ^ h >> 29;
}
