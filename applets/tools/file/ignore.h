/* What .gitignore and .ignore say is to be left out. */
#ifndef FILE_IGNORE_H
#define FILE_IGNORE_H

#include <stdbool.h>
#include <stddef.h>

struct ignore_rule {
    char *pattern;    /* glob.h */
    size_t base;      /* bytes of paths that lead to where it stands */
    bool keeps;       /* in spite of those before it */
    bool directories; /* is for these alone */
    bool whole;       /* for paths, not names */
};

/* Adds the rules that stand in a directory, of which the path has so many bytes. */
void ignore_read(struct ignore_rule **rules, size_t *n, int dir, size_t base);
/* Forgets those behind the first `keep`. */
void ignore_forget(struct ignore_rule *rules, size_t *n, size_t keep);
/* Whether the last of them that is about it leaves it out. */
bool ignore_says(const struct ignore_rule *rules, size_t n, const char *path, const char *name,
                 bool directory);

#endif
