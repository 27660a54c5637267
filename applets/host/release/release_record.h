/* What stands behind the program in a released file. Text, and nothing in it is believed unseen.
 *
 *   a released file      program, then sums: a line of sha256sum(1) for each architecture's program, and the
 * mark
 *                        "#toolbox sums 00000345", which counts the bytes of lines and mark
 *   the self-contained   released files one behind the other, the own architecture's first, then the pack: a
 * line one                  "SIZE NAME" for each, and the mark "#toolbox pack 00000123"
 *
 * The kernel and the linker's tools look at neither. Both are read from the end. */
#ifndef RELEASE_RECORD_H
#define RELEASE_RECORD_H

#include <stdbool.h>
#include <stddef.h>

#include "json.h"
#include "sha256.h"

#define RECORD_MAX 65536    /* lines and mark */
#define RECORD_MARK_SIZE 23 /* with its newline */

/* How many bytes at the end of `text` (whole file, or enough of its end) are a record of that kind, with its
 * mark; 0: none. */
size_t record_size(struct span text, const char *kind);

/* The lines of the record at the end of the text, without the mark. */
struct span record_lines(struct span text, const char *kind);

/* One line of sums: *rest goes on behind it. 1, 0 at the end, -1 where it is none. The sum is lower-case. */
struct sum {
    char sha256[SHA256_HEX_SIZE];
    struct span name; /* no '/' in it */
};
int sums_next(struct span *rest, struct sum *sum);

/* True when every line is one of sums and there is exactly one of that name; hex gets its sum. */
bool sums_find(struct span lines, const char *name, char hex[SHA256_HEX_SIZE]);

/* One line of a pack, as sums_next. */
struct packed {
    size_t size;
    struct span name;
};
int pack_next(struct span *rest, struct packed *packed);

#endif
