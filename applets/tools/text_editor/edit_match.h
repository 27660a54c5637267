/* Where old_str stands in a file, and what comes in its place. */
#ifndef EDIT_MATCH_H
#define EDIT_MATCH_H

#include "buf.h"
#include "edit_file.h"
#include "err.h"
#include "text_editor_types.h"

/* Finds the one place of `old` in the content and fills *s; the text that comes in is in `put` when it isn't
 * new_str itself. Exact bytes come first. When they don't occur, a LF of old_str may stand for a CRLF of the
 * file, and the replacement takes the line ends of what it replaces. In a file with CRLF alone, a new_str
 * that brings lines into one gets CRLF too. ERR_TOOL when there isn't exactly one place: what is near, or the
 * lines of all. `shown` names the file. *crlf: line ends of new_str were changed. */
int edit_match(const char *data, size_t n, const struct text *old, const struct text *new, const char *shown,
               struct splice *s, struct buf *put, bool *crlf, struct err *err);

/* Appends text with the line ends `crlf` or as they are. */
void edit_put_lines(struct buf *out, const char *s, size_t n, bool crlf);

#endif
