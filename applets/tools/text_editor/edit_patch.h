/* A patch as it is written: unified diffs, git's with all they say, and the format that begins with
 * "*** Begin Patch". What its lines mean, not what they are applied to.
 *
 * A header's counts that are wrong are passed over where the lines themselves tell where the hunk ends; text
 * around the diffs (a mail, a fence) is none of it. */
#ifndef EDIT_PATCH_H
#define EDIT_PATCH_H

#include <stdbool.h>
#include <stddef.h>

#include "err.h"

struct patch_line {
    char op; /* ' ', '-' or '+' */
    bool no_newline;
    const char *s; /* in the patch's own memory */
    size_t n;
};

struct patch_hunk {
    size_t line;             /* its own, in the patch */
    bool numbered;           /* old_start is said: the line where it begins, 0 in front of the first */
    bool at_end;             /* its last line is that of the file */
    bool miscounted;         /* the header says other numbers of lines */
    size_t old_start, n_old; /* n_old: lines of the header, then those that are there */
    const char *anchor;      /* a line that stands somewhere in front of it; NULL: not said */
    size_t n_anchor;
    size_t first, n; /* its lines, in patch.lines */
};

struct patch_file {
    enum { PATCH_UPDATE, PATCH_ADD, PATCH_DELETE } kind;
    char *name;      /* NULL: not said */
    char *old_name;  /* what else it may be called; NULL: nothing */
    char *to;        /* it gets this name; NULL: it keeps its own */
    bool copy;       /* and that one stays */
    bool strict;     /* the end of the last line counts */
    unsigned mode;   /* as git writes it, 0100755; 0: not said */
    size_t line;     /* in the patch */
    size_t first, n; /* in patch.hunks */
};

struct patch {
    struct patch_file *files;
    struct patch_hunk *hunks;
    struct patch_line *lines;
    size_t n_files, n_hunks, n_lines;
};

/* Reads n bytes, which have to stay. ERR_TOOL, and where: what is no patch, or can't be applied by anybody.
 */
int patch_read(struct patch *p, const char *text, size_t n, struct err *err);
void patch_release(struct patch *p);
#define PATCH_AUTO __attribute__((cleanup(patch_release)))

#endif
