/* Patterns for names and paths of files.
 *
 *   *      any characters but '/'          ?      one character but '/'
 *   **     as a whole component: any number of components, none included
 *   [a-z]  one of these, [!a-z] or [^a-z] none of these
 *   {a,b}  one of these patterns           \x     the character x itself
 *
 * Bytes are compared but for '?' and brackets, which take whole UTF-8 characters. A dot at the front is like
 * any other character. */
#ifndef CORE_GLOB_H
#define CORE_GLOB_H

#include <stdbool.h>
#include <stddef.h>

#include "err.h"

/* Time is bounded (GLOB_STEPS); where that doesn't suffice the answer is no. */
bool glob_match(const char *pattern, const char *text);

/* Whether a path (and its last component) matches: a pattern without '/' is for names alone. */
bool glob_match_file(const char *pattern, const char *path, const char *name);

/* NULL, or what is wrong with a pattern. */
const char *glob_check(const char *pattern);
/* -1 with ERR_PARAMS, which names `field`, where one of the patterns is none. */
int glob_check_all(char *const *patterns, size_t n, const char *field, struct err *err);

#define GLOB_STEPS 100000

#endif
