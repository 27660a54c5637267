/* The program's addresses and constants, most of which a call does without.
 *
 * It is position-independent, so the tables that hold pointers have to be put right after it was loaded. Each
 * page of them that is written to is copied, which is a third of what a short call takes. So only those that
 * a call to the server needs are put right before main (core/static/start.c). And the constants of what is
 * needed rarely, tables and texts, are packed in the file: PACKED in the Makefile says whose. So is the code
 * of what few need at all (code_parts.def).
 *
 * Nothing of this is done where the program was started whole (other machines, the tests). */
#ifndef CORE_RELOCATE_H
#define CORE_RELOCATE_H

#include <stdbool.h>
#include <stddef.h>

#include "err.h"

/* Puts the rest right, once, and makes it read-only: before anything is touched that tables of applets and
 * tools lead to. */
void relocate_rest(void);

/* And unpacks the constants: before what an applet or a keeper does, and what the server does for a tool. */
void relocate_all(void);

/* Those of code. */
#define CODE_PART(name) CODE_##name,
#define HOST_CODE_PART CODE_PART
enum code_part {
#include "code_parts.def"
    CODE_PARTS
};
#undef CODE_PART
#undef HOST_CODE_PART

/* Unpacks a part, once: before anything of it is called. -1 where no program may add code to its memory. */
int code_unpack(enum code_part which, struct err *err);

/* Of the static binary (core/static/start.c), for that: what is packed, and where it belongs, which ends with
 * a byte to spare; false: nothing is. */
struct packed {
    const char *data;
    size_t n_data;
    char *place;
    size_t n_place;
};
bool constants_packed(struct packed *p);
bool code_packed(enum code_part which, struct packed *p);
/* And when they are there: puts constants right and makes them read-only. */
void constants_unpacked(void);

#endif
