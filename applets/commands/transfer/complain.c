#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "commands/transfer/transfer.h"
#include "mem.h"
#include "tools/text_editor/edit_path.h"

enum { COMPLAINTS_SAID = 20 };

int transfer_complaints;

static void say(const char *path, const char *what)
{
    char *shown MEM_AUTO = path ? edit_path_shown(path, strlen(path), 0) : NULL;
    dprintf(STDERR_FILENO, "%s%s%s\n", shown ? shown : "", shown ? ": " : "", what);
}

void transfer_complain(const char *path, const char *why)
{
    if (transfer_complaints++ < COMPLAINTS_SAID)
        say(path && !*path ? "." : path, why);
}

void transfer_note(const char *path, const char *what)
{
    static int notes;
    if (notes++ < COMPLAINTS_SAID)
        say(path, what);
}

const char *transfer_last_part(const char *path, size_t *n)
{
    size_t end = strlen(path);
    while (end > 0 && path[end - 1] == '/')
        end--;
    size_t begin = end;
    while (begin > 0 && path[begin - 1] != '/')
        begin--;
    *n = end - begin;
    return path + begin;
}

char *transfer_name(const char *path)
{
    size_t n;
    const char *last = transfer_last_part(path, &n);
    bool none = n == 0 || (n == 1 && last[0] == '.') || (n == 2 && last[0] == '.' && last[1] == '.');
    return none ? mem_strdup(".") : mem_dup(last, n);
}
