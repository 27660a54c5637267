/* A 64-bit sum of bytes that come in pieces; how they are cut doesn't matter. Against damage, not against an
 * attacker. */
#ifndef CORE_TEXT_SUM_H
#define CORE_TEXT_SUM_H

#include <stddef.h>
#include <stdint.h>

enum { TEXT_SUM_LANES = 4, TEXT_SUM_BLOCK = 8 * TEXT_SUM_LANES };
struct text_sum {
    uint64_t lanes[TEXT_SUM_LANES];
    uint64_t len;
    unsigned char part[TEXT_SUM_BLOCK]; /* len % TEXT_SUM_BLOCK bytes that are no whole block yet */
};
void text_sum_begin(struct text_sum *sum);
void text_sum_add(struct text_sum *sum, const void *data, size_t n);
uint64_t text_sum_end(struct text_sum *sum);

#endif
