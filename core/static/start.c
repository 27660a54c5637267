/* What runs before main: the C library's start-up, with most of the relocation left for later (relocate.h).
 *
 * Its start file for position-independent programs (rcrt1.o) puts every table right before main runs. Here
 * the one for programs that are told where they lie is linked (Scrt1.o), and --wrap leads it to this function
 * first. scripts/link-order puts the tables that are rarely needed first, and names where they begin and end.
 * scripts/link-packed says what is unpacked.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "relocate.h"

/* The linker's names. */
#define LINKER __attribute__((visibility("hidden")))
extern const char __ehdr_start[] LINKER;
extern const uintptr_t relr[] LINKER, relr_end[] LINKER;
extern const char packed[] LINKER, packed_end[] LINKER;
extern char cold_tables[] LINKER, hot_tables[] LINKER, tables_end[] LINKER, unpacked[] LINKER,
    unpacked_end[] LINKER;

int __wrap___libc_start_main(int (*run)(int, char **), int argc, char **argv);
int __real___libc_start_main(int (*run)(int, char **), int argc, char **argv, void *, void *, void *);

/* Adds where the program lies to each word between these two that holds an address. The list of such words
 * has the address of one (even), or a bit for each of the 63 words that follow (odd). */
static void relocate(const char *from, const char *to)
{
    uintptr_t base = (uintptr_t)__ehdr_start, *at = NULL;
    size_t n = ((uintptr_t)relr_end - (uintptr_t)relr) / sizeof *relr;
    for (const uintptr_t *entry = relr; n > 0; entry++, n--) {
        bool one = *entry % 2 == 0;
        uintptr_t bits = one ? 1 : *entry >> 1;
        if (one)
            at = (uintptr_t *)(base + *entry);
        if ((const char *)at >= to)
            return;
        uintptr_t *next = at + (one ? 1 : 63);
        if ((const char *)next > from && (const char *)at < to)
            for (; bits != 0; bits >>= 1, at++)
                if (bits & 1 && (const char *)at >= from && (const char *)at < to)
                    *at += base;
        at = next;
    }
}

int __wrap___libc_start_main(int (*run)(int, char **), int argc, char **argv)
{
    relocate(hot_tables, unpacked);
    return __real___libc_start_main(run, argc, argv, NULL, NULL, NULL);
}

static void finish(char *from, char *to, const char *end)
{
    relocate(from, to);
    char *page = from - (uintptr_t)from % (uintptr_t)sysconf(_SC_PAGESIZE);
    mprotect(page, (size_t)(end - page), PROT_READ);
}

void relocate_rest(void)
{
    static bool done;
    if (!done)
        finish(cold_tables, hot_tables, tables_end);
    done = true;
}

bool constants_packed(struct packed *p)
{
    *p = (struct packed){packed, (size_t)(packed_end - packed), unpacked, (size_t)(unpacked_end - unpacked)};
    return true;
}

#ifdef TOOLBOX_GUEST
#define HOST_CODE_PART(name)
#else
#define HOST_CODE_PART CODE_PART
#endif

#define CODE_PART(name)                                                                                      \
    extern const char packed_##name[] LINKER, packed_##name##_end[] LINKER;                                  \
    extern char unpacked_##name[] LINKER, unpacked_##name##_end[] LINKER;
#include "code_parts.def"
#undef CODE_PART

bool code_packed(enum code_part which, struct packed *p)
{
    switch (which) {
#define CODE_PART(name)                                                                                      \
    case CODE_##name:                                                                                        \
        *p = (struct packed){packed_##name, (size_t)(packed_##name##_end - packed_##name), unpacked_##name,  \
                             (size_t)(unpacked_##name##_end - unpacked_##name)};                             \
        return true;
#include "code_parts.def"
#undef CODE_PART
    default:
        return false;
    }
}

void constants_unpacked(void)
{
    finish(unpacked, unpacked_end, unpacked_end);
}
