/* A folder that is brought along (inject --with): made into one stream on the host (settle.h says of what
 * form), which the program in the target unpacks beside itself. Neither side needs an archiver. */
#ifndef INJECT_PACK_H
#define INJECT_PACK_H

#include "err.h"
#include "json.h"

struct packed_folder {
    const char *dir;
    struct span stream; /* mapped */
};

/* Reads the folder. -1 with ERR_TOOL: it can't be read, or something in it is neither file, folder nor link.
 */
int pack_folder(struct packed_folder *c, const char *dir, struct err *err);
void packed_folder_release(struct packed_folder *c);

#endif
