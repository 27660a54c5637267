/* Changes of several files in one call: patches, and lists of edits. */
#ifndef EDIT_TOGETHER_H
#define EDIT_TOGETHER_H

#include "buf.h"
#include "err.h"
#include "text_editor_types.h"

/* EDIT_PATCH and EDIT_MANY; as text_editor_run. */
int edit_together(const struct edit_request *r, struct buf *answer, struct err *err);

#endif
