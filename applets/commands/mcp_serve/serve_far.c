#include "serve_far.h"

#include <string.h>

#include "glob.h"
#include "mem.h"

#define GLOB "*?["

/* ---- targets ---- */

static bool is_meant(const char *pattern, const char *text)
{
    return strcmp(pattern, text) == 0 || (strpbrk(pattern, GLOB) && glob_match(pattern, text));
}

char *far_target(const struct serve_far *far, const char *path)
{
    char *name MEM_AUTO = mem_strdup(path + strspn(path, "/"));
    size_t n = strlen(name);
    if (n > 0 && name[n - 1] == '/')
        name[--n] = '\0';
    if (strpbrk(name, GLOB))
        return NULL;
    if (n == 0)
        return far->n == 1 && !strpbrk(far->patterns[0], GLOB) ? mem_strdup(far->patterns[0]) : NULL;
    for (size_t i = 0; i < far->n; i++) {
        const char *pattern = far->patterns[i];
        char *full MEM_AUTO = mem_printf("%.*s%s", (int)(strcspn(pattern, ":") + 1), pattern, name);
        if (is_meant(pattern, name))
            return mem_strdup(name);
        if (is_meant(pattern, full))
            return mem_strdup(full);
    }
    return NULL;
}

/* ---- texts ---- */

void far_put_edited(struct buf *out, struct span text, struct edit *edits, size_t n)
{
    size_t at = 0;
    for (size_t done = 0; done < n; done++) {
        struct edit *first = NULL;
        for (size_t i = 0; i < n; i++)
            if (edits[i].with && (!first || edits[i].what.s < first->what.s))
                first = &edits[i];
        if (!first)
            break;
        size_t begin = (size_t)(first->what.s - text.s);
        buf_add(out, text.s + at, begin - at);
        buf_adds(out, first->with);
        at = begin + first->what.n;
        first->with = NULL;
    }
    buf_add(out, text.s + at, text.n - at);
}

bool far_inside(struct span object, const char *key, enum json_kind kind, struct span *value)
{
    return json_kind(object) == JSON_OBJECT && json_member(object, key, value, NULL) &&
           json_kind(*value) == kind;
}
