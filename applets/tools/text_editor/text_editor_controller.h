/* The tool itself: no JSON, no socket.
 *
 * Everything is done as the process's own user; relative paths are taken from its working directory. */
#ifndef TEXT_EDITOR_CONTROLLER_H
#define TEXT_EDITOR_CONTROLLER_H

#include "buf.h"
#include "err.h"
#include "text_editor_types.h"

/* Does what the request asks for and appends the answer, which is for a model to read. -1: nothing was
 * changed, unless the error says otherwise; `answer` may hold a part of one. */
int text_editor_run(const struct edit_request *request, struct buf *answer, struct err *err);

#endif
