/* The program's addresses and constants, most of which a call does without.
 *
 * It is position-independent, so the tables that hold pointers have to be put right after it was loaded. Each
 * page of them that is written to is copied, which is a third of what a short call takes. So only those that
 * a call to the server needs are put right before main (core/static/start.c). And the constants of what is
 * needed rarely, tables and texts, are packed in the file: PACKED in the Makefile says whose.
 *
 * Nothing of this is done where the program was started whole (other machines, the tests). */
#ifndef CORE_RELOCATE_H
#define CORE_RELOCATE_H

#include <stdbool.h>
#include <stddef.h>

/* Puts the rest right, once, and makes it read-only: before anything is touched that tables of applets and
 * tools lead to. */
void relocate_rest(void);

/* And unpacks the constants: before what an applet or a keeper does, and what the server does for a tool. */
void relocate_all(void);

/* Of the static binary (core/static/start.c), for that: what is packed, and where it belongs, which ends with
 * a byte to spare; false: nothing is. And when it is there: puts it right and makes it read-only. */
struct packed_constants {
    const char *packed;
    size_t n_packed;
    char *place;
    size_t n_place;
};
bool constants_packed(struct packed_constants *c);
void constants_unpacked(void);

#endif
