/* Text found again where it was copied inexactly: compared without what is taken for the same. */
#ifndef EDIT_FOLD_H
#define EDIT_FOLD_H

#include <stdbool.h>
#include <stddef.h>

#include "buf.h"

/* FOLD_LOOKS: characters that look alike are one: quotes and dashes of a typesetter and those of a keyboard,
 * blanks of any kind, letters of Latin with their accents in one character or behind it; what can't be seen
 * is left out. */
enum { FOLD_CR = 1, FOLD_SPACE = 2, FOLD_CASE = 4, FOLD_LOOKS = 8 };

bool fold_is_space(char c);

/* Finds `old` in the data; *begin and *end: the first place. */
bool fold_find(const char *data, size_t n, const char *old, size_t n_old, int fold, size_t *begin,
               size_t *end);

/* Whether both are the same so. */
bool fold_equal(const char *a, size_t n_a, const char *b, size_t n_b, int fold);

/* Says what stands at the first place in which the two texts differ: "a tab where `what` has a space". */
void fold_put_difference(struct buf *out, const char *theirs, size_t n_theirs, const char *old, size_t n_old,
                         const char *what);
/* Offset of that place: where a character begins in both. */
size_t fold_difference(const char *theirs, size_t n_theirs, const char *old, size_t n_old);

#endif
