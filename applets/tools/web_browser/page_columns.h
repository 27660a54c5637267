/* A DOMSnapshot is a table: each column an array of numbers, of which some stand for strings. */
#ifndef APPLETS_WEB_BROWSER_PAGE_COLUMNS_H
#define APPLETS_WEB_BROWSER_PAGE_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>

#include "buf.h"
#include "json.h"

/* A whole number, 0 where there is none, within PAGE_COORDINATE_MAX. */
int column_number(struct span value);

size_t column_length(struct span array);
/* The member of that name, an empty array where it is none. */
struct span column_of(struct span object, const char *key);

/* Those that numbers stand for: JSON strings of the text that was read. */
struct column_strings {
    struct span *at; /* owned */
    size_t n;
};
void column_strings(struct column_strings *strings, struct span array);
/* By its number; an empty one where there is none. */
struct span column_string(const struct column_strings *strings, int number);
/* The one that an element of an array names; an empty one behind its end. */
struct span column_next_string(const struct column_strings *strings, struct span array, size_t *at);
/* The text of a string by its number; false when there is none, or an empty one. */
bool column_text(const struct column_strings *strings, int number, struct buf *text);

/* A sparse column: the nodes that have a value, and their values. NULL at the end, also for what names no
 * node. */
struct column_sparse {
    struct span index, value;
    size_t index_at, value_at;
};

struct column_sparse column_sparse(struct span nodes, const char *key);

#endif
