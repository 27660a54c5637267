#include "tools/file/watch_node.h"

#include <string.h>

#include "mem.h"

struct watch_node *watch_node_new(struct watch_node *above, const char *name)
{
    size_t length = strlen(name) + 1;
    struct watch_node *n = mem_zalloc(sizeof *n + length);
    n->above = above;
    n->number = -1;
    memcpy(n->name, name, length);
    return n;
}

unsigned watch_node_place(const struct watch_node *dir, const char *name)
{
    unsigned from = 0, to = dir->n;
    while (from < to) {
        unsigned middle = (from + to) / 2;
        if (strcmp(dir->below[middle]->name, name) < 0)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

struct watch_node *watch_node_find(const struct watch_node *dir, const char *name)
{
    unsigned at = watch_node_place(dir, name);
    return at < dir->n && strcmp(dir->below[at]->name, name) == 0 ? dir->below[at] : NULL;
}

struct watch_node *watch_node_insert(struct watch_node *dir, const char *name)
{
    unsigned at = watch_node_place(dir, name);
    if (dir->n == dir->room)
        dir->below = mem_realloc(dir->below, (dir->room = 2 * dir->room + 4) * sizeof *dir->below);
    memmove(dir->below + at + 1, dir->below + at, (dir->n - at) * sizeof *dir->below);
    dir->n++;
    return dir->below[at] = watch_node_new(dir, name);
}
