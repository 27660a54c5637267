/* Regular expressions for lines, one or several in a text (^ and $ are at those of each, . is no line end):
 * POSIX extended syntax, in UTF-8.
 *
 *   a|b ( ) . [ ] [^ ] * + ? {n} {n,} {,m} {n,m} ^ $     as POSIX has them; n and m up to 255
 *   [:alpha:] and the other classes                      all characters beyond ASCII count as letters
 *   \w \W \s \S \d \D, \b \B \< \>, \t \n \r \f \a \e, \x41, \x{20AC}
 *
 * There are no references to what matched before (\1). The search of a line takes time in proportion to its
 * length times that of the expression, whatever they are, and memory in proportion to the expression, which
 * is bounded. Ignoring case is for ASCII. */
#ifndef CORE_EXPRESSION_H
#define CORE_EXPRESSION_H

#include <stdbool.h>
#include <stddef.h>

struct expression;

/* To be freed with expression_free. NULL, and *wrong says in a few words what is wrong with it. */
struct expression *expression_make(const char *pattern, bool ignore_case, const char **wrong);
void expression_free(struct expression *e);

/* Where the first match in n bytes begins; -1: there is none. Bytes that are no UTF-8 are characters of their
 * own, which no set of characters has. */
ptrdiff_t expression_find(struct expression *e, const char *line, size_t n);

/* Where the shortest match from there on ends, behind expression_find. */
size_t expression_match_end(const struct expression *e);

#endif
