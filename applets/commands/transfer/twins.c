#include "commands/transfer/twins.h"

#include <stdlib.h>
#include <string.h>

#include "mem.h"

struct twins {
    struct twin {
        dev_t dev;
        ino_t ino;
        char *path; /* NULL: free */
    } * slots;
    size_t n, room; /* room: a power of two */
};

struct twins *twins_new(void)
{
    return mem_zalloc(sizeof(struct twins));
}

void twins_free(struct twins *t)
{
    for (size_t i = 0; i < t->room; i++)
        free(t->slots[i].path);
    free(t->slots);
    free(t);
}

static struct twin *slot_of(const struct twins *t, dev_t dev, ino_t ino)
{
    size_t at = (size_t)(((unsigned long long)ino * 0x9E3779B97F4A7C15u) >> 20);
    for (;; at++) {
        struct twin *s = &t->slots[at & (t->room - 1)];
        if (!s->path || (s->dev == dev && s->ino == ino))
            return s;
    }
}

static void grow(struct twins *t)
{
    struct twins old = *t;
    t->room = old.room ? 2 * old.room : 64;
    t->slots = mem_zalloc(t->room * sizeof *t->slots);
    for (size_t i = 0; i < old.room; i++)
        if (old.slots[i].path)
            *slot_of(t, old.slots[i].dev, old.slots[i].ino) = old.slots[i];
    free(old.slots);
}

const char *twins_of(struct twins *t, const struct stat *st, const char *path)
{
    if (2 * t->n >= t->room)
        grow(t);
    struct twin *s = slot_of(t, st->st_dev, st->st_ino);
    if (s->path)
        return strcmp(s->path, path) == 0 ? NULL : s->path;
    *s = (struct twin){st->st_dev, st->st_ino, mem_strdup(path)};
    t->n++;
    return NULL;
}
