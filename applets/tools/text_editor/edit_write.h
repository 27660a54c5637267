/* The replacement of a file's content: all or nothing.
 *
 * A new content is written beside the file and renamed over it where nothing is lost by that which hangs on
 * the inode: one link, and owner, mode and extended attributes (ACLs among them) can be given to the new one.
 * Otherwise it is written in place, after the old content is in the journal (edit_history.h) and the space is
 * reserved; when that fails it is put back, and when the process dies the next call puts it back. Nothing is
 * synced to the disk: this holds for processes that die, not for machines that do. */
#ifndef EDIT_WRITE_H
#define EDIT_WRITE_H

#include "edit_file.h"
#include "edit_history.h"
#include "edit_path.h"
#include "err.h"

/* Replaces the content of a loaded file, remembering it in `undo` as `kind`. ERR_TOOL: the file is as it was,
 * or the message says otherwise. */
int edit_write(struct edit_file *f, const struct edit_path *p, const struct splice *s, enum entry_kind kind,
               struct undo_store *undo, struct err *err);

/* Makes a file that isn't there, whole or not at all, never in the place of another one. */
int edit_create(const struct edit_path *p, const char *text, size_t n, struct undo_store *undo,
                struct err *err);

/* Puts content back in place: `s` as for edit_write, without a journal (there is one). -1 with errno. */
int edit_restore(struct edit_file *f, const struct edit_path *p, const struct splice *s);

#endif
