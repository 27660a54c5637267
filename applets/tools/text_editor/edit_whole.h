/* Writing a file as a whole, or more to its end, with all that edits promise: all or nothing, links and
 * modes kept, and it can be undone. */
#ifndef EDIT_WHOLE_H
#define EDIT_WHOLE_H

#include <stdbool.h>
#include <stddef.h>

#include "edit_file.h"
#include "edit_history.h"
#include "edit_path.h"
#include "err.h"

/* Loads a file for editing; an edit that was interrupted is put right before anything else: then 1. */
int edit_load(struct edit_file *f, struct edit_path *p, struct undo_store *undo, struct err *err);

/* What turns the content into another one. */
struct splice edit_difference(const struct edit_file *f, const char *new, size_t n_new);

struct edit_whole {
    enum { WHOLE_REPLACE, WHOLE_CREATE, WHOLE_APPEND } how; /* create: never in the place of another file */
    /* results */
    bool created;
    bool undoable;
    unsigned long long size; /* of the file now */
};

int edit_whole(struct edit_whole *w, const char *path, size_t n_path, const char *data, size_t n,
               struct err *err);

#endif
