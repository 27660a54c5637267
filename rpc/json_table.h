/* A list of JSON objects as a table for people. */
#ifndef RPC_JSON_TABLE_H
#define RPC_JSON_TABLE_H

#include "buf.h"
#include "json.h"

/* Appends a line of headings and a line for each object of the (checked) array: the members that `columns`
 * names (NULL at the end), each as wide as its widest value on a terminal. What is absent, null or no scalar
 * shows as "-"; control characters become spaces, so that every object is one line. Numbers whose names tell
 * a unit (age_s, memory_kb, bytes_in, unread_stdout) are shown for people: 1.8 s, 30 min, 652 KiB. */
void json_table(struct buf *out, struct span list, const char *const *columns);
/* The same with every number and name as it is. */
void json_table_exact(struct buf *out, struct span list, const char *const *columns);

#endif
