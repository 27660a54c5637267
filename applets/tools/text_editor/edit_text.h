/* Counting and comparing in text that is in memory. */
#ifndef EDIT_TEXT_H
#define EDIT_TEXT_H

#include <stdbool.h>
#include <stddef.h>

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

#endif
