/* The words of a command line that is being put together. Owned by whoever embeds it: = {0} and argv_release.
 */
#ifndef INJECT_ARGV_H
#define INJECT_ARGV_H

#include <stddef.h>

#include "buf.h"
#include "err.h"

struct argv {
    char **words; /* ends with NULL once there is one; each is owned */
    size_t n;
};

void argv_add(struct argv *a, const char *word);
void argv_take(struct argv *a, char *word);
void argv_release(struct argv *a);
#define ARGV_AUTO __attribute__((cleanup(argv_release)))

/* Adds the words of a text as a shell separates them: white space, quotes and backslashes, nothing is
 * expanded. -1 with ERR_PARAMS when a quote is not closed. */
int argv_split(struct argv *a, const char *text, struct err *err);

/* A word that has to be another one each time that the command is run: ARGV_FRESH, which argv_freshen gives
 * digits that no other had. */
#define ARGV_FRESH "--exec-id=toolbox-0000000000000000"
void argv_freshen(char *const *words);

/* Appends a word in single quotes, as every shell reads it back. */
void argv_quote(struct buf *out, const char *word);

#endif
