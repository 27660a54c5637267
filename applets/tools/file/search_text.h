/* Texts that a search looks for before it looks for anything else: sixteen places at once. */
#ifndef FILE_SEARCH_TEXT_H
#define FILE_SEARCH_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "buf.h"

struct search_text {
    const char *s; /* with `any_case` in small letters */
    size_t n;
    bool any_case; /* of ASCII */
};

/* The first place where the text stands in those bytes; NULL: it doesn't. */
const char *search_text_find(const struct search_text *t, const char *in, size_t n);
/* The longest text that whatever matches an expression has, which is a right one (core/expression.h); empty
 * where none is seen. */
void search_text_of(const char *pattern, struct buf *longest);

#endif
