#include "mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
