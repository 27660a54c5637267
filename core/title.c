#include "title.h"

#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "mem.h"

static char *area;
static size_t area_size;
static char program[64];

void title_init(int argc, char **argv)
{
    if (argc < 1)
        return;
    const char *slash = strrchr(argv[0], '/');
    snprintf(program, sizeof program, "%s", slash ? slash + 1 : argv[0]);
    area = argv[0];
    char *end = argv[argc - 1] + strlen(argv[argc - 1]) + 1;
    area_size = (size_t)(end - area);
}

void title_hide_arguments(int argc, char **argv, int keep)
{
    for (int i = 0; i < argc; i++) {
        char *seen = argv[i];
        argv[i] = mem_strdup(seen);
        if (i >= keep)
            explicit_bzero(seen, strlen(seen));
    }
}

const char *title_program(void)
{
    return program;
}

/* The environment lies behind the arguments; what overwrites the last argument's NUL makes the kernel read on
 * there. So it is copied first, and only when a title is really set: most calls never do. */
static void move_environment(void)
{
    static char **moved;
    size_t n = 0;
    if (moved)
        return;
    while (environ && environ[n])
        n++;
    moved = mem_zalloc((n + 1) * sizeof *moved);
    for (size_t i = 0; i < n; i++) {
        char *value = environ[i];
        moved[i] = mem_strdup(value);
        if (value == area + area_size)
            area_size += strlen(value) + 1;
    }
    environ = moved;
}

void title_set(const char *title)
{
    const char *base = strrchr(title, ' ') ? strrchr(title, ' ') + 1 : title;
    prctl(PR_SET_NAME, base, 0, 0, 0);
    if (!area)
        return;
    move_environment();
    memset(area, 0, area_size);
    size_t n = strlen(title);
    memcpy(area, title, n < area_size ? n : area_size - 1);
}

bool title_is_inspect(void)
{
    return strcmp(title_program(), "inspect-sandbox-tools") == 0 ||
           strcmp(title_program(), "inspect-tool-support") == 0;
}
