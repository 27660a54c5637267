/* What finding and searching share. */
#ifndef FILE_FIND_H
#define FILE_FIND_H

#include "tools/file/file_request.h"
#include "tools/file/walk.h"

/* A walk that leaves out what the request says. */
struct walk file_walk_for(const struct file_seek *seek, bool (*entry)(void *arg, const struct walk_entry *e),
                          void *arg);
/* A path as it can be used again: the start's, and the way from there. */
void file_put_below(struct buf *out, const char *start, const char *path);

#endif
