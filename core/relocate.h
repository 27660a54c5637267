/* The program's addresses: it is position-independent, so the tables that hold pointers have to be put right
 * after it was loaded. Each page of them that is written to is copied, which is a third of what a short call
 * takes. So only those that a call to the server needs are put right before main (core/static/start.c). */
#ifndef CORE_RELOCATE_H
#define CORE_RELOCATE_H

/* Puts the rest right, once, and makes all of them read-only: before anything is touched that tables of
 * applets and tools lead to. Nothing where the program was started whole (other machines, the tests). */
void relocate_rest(void);

#endif
