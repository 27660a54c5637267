/* The listing of a directory: two levels deep, without hidden entries, one path a line, sorted by bytes. */
#ifndef EDIT_DIR_H
#define EDIT_DIR_H

#include "buf.h"
#include "edit_path.h"
#include "err.h"

/* Appends the listing, the directory itself first. Symlinks are listed, not followed. What can't be read is
 * noted below, and beyond EDIT_ANSWER_MAX characters how many entries are left out. Memory stays bounded
 * whatever the directory holds. */
int edit_dir_list(const struct edit_path *p, struct buf *out, struct err *err);

#endif
