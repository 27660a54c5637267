/* Memory that is there or the process ends.
 *
 * Every size that a peer can choose is bounded before it gets here (struct buf's max, the limits of
 * the parsers), so running out is a fault of the machine, not an input: the process says so and ends,
 * and what it held for others lives on in the other keepers. Blocks are freed with free(). */
#ifndef CORE_MEM_H
#define CORE_MEM_H

#include <stddef.h>

void *mem_alloc(size_t size);
void *mem_zalloc(size_t size);
void *mem_realloc(void *block, size_t size);
char *mem_dup(const char *s, size_t len); /* a copy with a NUL behind */
char *mem_strdup(const char *s);
char *mem_printf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Gives the pages of our own code back that are mapped here; those that are needed come again by themselves.
 * For who has started and waits from now on: a start maps several times what a wait uses. */
void mem_let_code_go(void);

/* __attribute__((cleanup)) for pointers from the above. */
void mem_free_auto(void *pointer_to_pointer);
#define MEM_AUTO __attribute__((cleanup(mem_free_auto)))

/* For a static buffer of a kilobyte or more: it lies behind the small variables, which share a page. */
#define MEM_LARGE __attribute__((section(".bss.LARGE")))

#endif
