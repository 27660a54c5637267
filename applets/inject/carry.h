/* A folder that is brought along (inject --with): made into one stream on the host (settle.h says of what
 * form), which the program in the target unpacks beside itself. Neither side needs an archiver. */
#ifndef INJECT_CARRY_H
#define INJECT_CARRY_H

#include "err.h"
#include "json.h"

struct carried {
    const char *dir;
    struct span stream; /* mapped */
};

/* Reads the folder. -1 with ERR_TOOL: it can't be read, or something in it is neither file, folder nor link.
 */
int carry_read(struct carried *c, const char *dir, struct err *err);
void carry_release(struct carried *c);

#endif
