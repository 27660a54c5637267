/* Writing a file as a whole, or more to its end, with all that edits promise: all or nothing, links and
 * modes kept, and it can be undone. */
#ifndef EDIT_WHOLE_H
#define EDIT_WHOLE_H

#include <stdbool.h>
#include <stddef.h>

#include "err.h"

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
