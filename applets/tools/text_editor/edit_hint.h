/* Help for an old_str that doesn't occur. */
#ifndef EDIT_HINT_H
#define EDIT_HINT_H

#include <stddef.h>

#include "buf.h"
#include "err.h"

/* What comes closest to a text that doesn't occur; `what` it is called. */
void edit_put_hint(struct buf *hint, const char *data, size_t n, const char *old, size_t n_old,
                   const char *what);

/* Always -1: says that old_str doesn't occur, and what comes closest: a place that differs in nothing but
 * white space, case or line ends, or the lines that are most alike, each with its number. */
int edit_refuse_none(const char *data, size_t n, const char *old, size_t n_old, const char *shown,
                     struct err *err);

#endif
