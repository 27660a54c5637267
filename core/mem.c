#include "mem.h"

#include <link.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

extern const ElfW(Ehdr) __ehdr_start
    __attribute__((visibility("hidden"))); /* where our file begins in memory */

static _Noreturn void out_of_memory(void)
{
    static const char text[] = "toolbox: error: out of memory\n";
    ssize_t ignored = write(2, text, sizeof text - 1);
    (void)ignored;
    _exit(1);
}

void *mem_alloc(size_t size)
{
    return mem_realloc(NULL, size);
}

void *mem_zalloc(size_t size)
{
    void *block = calloc(1, size ? size : 1);
    if (!block)
        out_of_memory();
    return block;
}

void *mem_realloc(void *block, size_t size)
{
    block = realloc(block, size ? size : 1);
    if (!block)
        out_of_memory();
    return block;
}

char *mem_dup(const char *s, size_t len)
{
    char *copy = mem_alloc(len + 1);
    if (len > 0)
        memcpy(copy, s, len);
    copy[len] = '\0';
    return copy;
}

char *mem_strdup(const char *s)
{
    return mem_dup(s, strlen(s));
}

char *mem_printf(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *text = NULL;
    if (vasprintf(&text, fmt, ap) < 0)
        out_of_memory();
    va_end(ap);
    return text;
}

void mem_free_auto(void *pointer_to_pointer)
{
    free(*(void **)pointer_to_pointer);
}

void mem_let_code_go(void)
{
    const char *file = (const char *)&__ehdr_start;
    const ElfW(Phdr) *part = (const void *)(file + __ehdr_start.e_phoff);
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), base = 0;
    for (const ElfW(Phdr) *end = part + __ehdr_start.e_phnum; part < end; part++) {
        if (part->p_type == PT_LOAD && part->p_offset == 0)
            base = (uintptr_t)file - part->p_vaddr; /* 0 of a program that can't be moved */
        if (part->p_type != PT_LOAD || part->p_flags & PF_W)
            continue;
        uintptr_t from = base + part->p_vaddr, to = from + part->p_memsz;
        from = (from + page - 1) / page * page;
        to = to / page * page;
        if (from < to)
            madvise((void *)from, to - from, MADV_DONTNEED); /* where it can't be, it stays */
    }
}
