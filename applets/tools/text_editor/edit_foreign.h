/* Files in encodings that aren't known here, as GBK or Shift-JIS: nothing is put into one that it would not
 * understand. */
#ifndef EDIT_FOREIGN_H
#define EDIT_FOREIGN_H

#include "edit_encoding.h"

/* ERR_TOOL where characters beyond ASCII would come into such a file, and no encoding was named. */
int foreign_refuse(const struct coded *c, const struct splice *s, const char *shown, struct err *err);

#endif
