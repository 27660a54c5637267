/* Applying the hunks of a patch to a content. */
#ifndef EDIT_APPLY_H
#define EDIT_APPLY_H

#include "buf.h"
#include "edit_patch.h"
#include "err.h"

/* Appends to `out` what the hunks of a file make of a content, and to `notes` a line for each that did not
 * fit to the letter. Lines that a hunk doesn't add stay as they are in the file, to the byte.
 *
 * A hunk is applied where it says, or else at the one place behind the hunk before it where its old lines
 * stand: exactly; or without blanks at the ends of lines; or without white space, with characters that look
 * alike; or without up to two lines of context at its ends. Where it would fit in several places none is
 * taken. ERR_TOOL: which one doesn't fit, and what comes closest. */
int patch_apply(const struct patch *p, const struct patch_file *f, const char *data, size_t n,
                const char *shown, struct buf *out, struct buf *notes, struct err *err);

#endif
