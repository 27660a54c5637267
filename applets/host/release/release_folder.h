/* A folder with a release's files. */
#ifndef RELEASE_FOLDER_H
#define RELEASE_FOLDER_H

#include "err.h"

struct release_verdict {
    const char *name; /* of the file */
    const char *text; /* how it was found */
    int bad;          /* 0: right, or not there */
};
typedef void (*release_verdict_fn)(void *arg, const struct release_verdict *verdict);

/* Behind code_unpack(CODE_tls). Verifies SHA256SUMS by its signature (key: text of a public key; "" or NULL:
 * not looked at) and every file by SHA256SUMS; programs of this very version also by the sums behind this
 * program, where it has some. Tells each verdict. 0; 1: something is bad; -1 with ERR_TOOL: it can't be told.
 */
int release_folder_verify(const char *dir, const char *key, release_verdict_fn tell, void *arg,
                          struct err *err);

#endif
