/* Counting and comparing in text that is in memory. */
#ifndef EDIT_TEXT_H
#define EDIT_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Number of LFs. */
size_t text_count_lf(const char *s, size_t n);

/* Where the line begins that is `lines` in front of the one that holds offset `at`; 0 when there are fewer.
 */
size_t text_line_back(const char *s, size_t at, size_t lines);

/* Whether CRLF is the only line end that occurs. */
bool text_is_crlf(const char *s, size_t n);

/* Length of the longest common prefix, and suffix. */
size_t text_common_prefix(const char *a, const char *b, size_t n);
size_t text_common_suffix(const char *a_end, const char *b_end, size_t n);

/* A 64-bit sum of bytes that come in pieces; how they are cut doesn't matter. Against damage, not against an
 * attacker. */
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
