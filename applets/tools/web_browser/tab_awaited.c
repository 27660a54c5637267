#include "tab_awaited.h"

#include <stdlib.h>
#include <string.h>

static bool same(const char *one, const char *other)
{
    return one && other && strcmp(one, other) == 0;
}

static void put(char **at, char *id)
{
    free(*at);
    *at = id;
}

void awaited_set(struct awaited *w, char *id)
{
    put(&w->id, id);
    w->overtaken = false;
}

void awaited_starts(struct awaited *w, char *id)
{
    put(&w->started, id);
}

bool awaited_came(struct awaited *w, char *id)
{
    bool led = w->leads, by_itself = same(w->id, w->came) && led;
    put(&w->came, id);
    w->leads = false;
    if (by_itself)
        awaited_set(w, NULL);
    w->overtaken = w->id && !same(w->id, id);
    return led && same(w->id, id) && w->started && !same(w->started, id);
}

void awaited_release(struct awaited *w)
{
    put(&w->id, NULL);
    put(&w->came, NULL);
    put(&w->started, NULL);
}
