/* The first blocks of a process come from here, the others from the C library.
 *
 * A call lives for a millisecond and needs a handful of small blocks. musl's allocator, made for processes
 * that stay, asks the kernel eight times for memory (or gives it back) until it has served them, which is a
 * third of the time that such a call takes. So the linker (--wrap) leads malloc and its kin to these
 * functions first. They stack small blocks in a static area; a block that is freed goes when those above it
 * have gone. Whatever does not fit is the library's, and in a server or keeper the area simply holds some of
 * the blocks that stay.
 *
 * Only the static binary has this: under sanitizers and in tests every block is the library's. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "mem.h"

enum { AREA = 32768, BLOCK_MAX = 4096, ALIGN = 16 };

struct block {
    uint32_t size, below; /* bytes with this header; where the one below it begins */
    bool freed;
    _Alignas(ALIGN) char data[];
};

#define NO_BLOCK UINT32_MAX

static _Alignas(ALIGN) MEM_LARGE char area[AREA];
static uint32_t top = NO_BLOCK; /* initialised data: in memory that start-up has touched already */

/* The names are the linker's. */
void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *old, size_t size);
void __real_free(void *old);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *old, size_t size);
void __wrap_free(void *old);

static struct block *at(uint32_t offset)
{
    return (struct block *)(void *)(area + offset);
}

/* The block that the data belong to; NULL: one of the library's. */
static struct block *ours(const void *data)
{
    uintptr_t offset = (uintptr_t)data - (uintptr_t)area;
    return offset < AREA ? at((uint32_t)offset - (uint32_t)sizeof(struct block)) : NULL;
}

static uint32_t end_of(uint32_t offset)
{
    return offset == NO_BLOCK ? 0 : offset + at(offset)->size;
}

/* Bytes that a block takes; 0: it is not for this area. Even an empty one has bytes of its own: its address
 * must lie in the area. */
static uint32_t size_of(size_t size)
{
    size_t all = sizeof(struct block) + (size > 0 ? size : 1);
    return size > BLOCK_MAX ? 0 : (uint32_t)((all + ALIGN - 1) / ALIGN * ALIGN);
}

static uint64_t held_kinds;

/* Where a process that stays has filled the area, the library serves small blocks too, and gives the pages of
 * a kind of size back as soon as none of it is in use: two calls of the kernel and a page fault for each
 * request. So it never gets the first block of a kind back. */
static void *malloc_and_keep(size_t size)
{
    size_t kind = size / ALIGN;
    if (kind < 64 && !(held_kinds >> kind & 1)) {
        held_kinds |= (uint64_t)1 << kind;
        void *volatile never_freed = __real_malloc(size);
        (void)never_freed;
    }
    return __real_malloc(size);
}

void *__wrap_malloc(size_t size)
{
    uint32_t start = end_of(top), need = size_of(size);
    if (need == 0 || need > AREA - start)
        return malloc_and_keep(size);
    *at(start) = (struct block){.size = need, .below = top};
    top = start;
    return at(start)->data;
}

void *__wrap_calloc(size_t n, size_t size)
{
    if (size > 0 && n > BLOCK_MAX / size)
        return __real_calloc(n, size);
    void *data = __wrap_malloc(n * size);
    return data ? memset(data, 0, n * size) : NULL;
}

void __wrap_free(void *old)
{
    struct block *b = ours(old);
    if (!b) {
        __real_free(old);
        return;
    }
    if (b->freed)
        __builtin_trap(); /* as the library does when a block is freed twice */
    b->freed = true;
    while (top != NO_BLOCK && at(top)->freed)
        top = at(top)->below;
}

/* The last block grows in place. */
static bool grow(struct block *b, size_t size)
{
    uint32_t start = (uint32_t)((char *)b - area), need = size_of(size);
    if (start != top || need == 0 || need > AREA - start)
        return false;
    b->size = need;
    return true;
}

void *__wrap_realloc(void *old, size_t size)
{
    struct block *b = ours(old);
    if (!old)
        return __wrap_malloc(size);
    if (!b)
        return __real_realloc(old, size);
    size_t had = b->size - sizeof *b;
    if (size <= had || grow(b, size))
        return old;
    void *data = __wrap_malloc(size);
    if (data) {
        memcpy(data, old, had);
        __wrap_free(old);
    }
    return data;
}
