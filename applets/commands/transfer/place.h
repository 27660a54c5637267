/* How a name comes to be what an entry says, at once: whoever looks sees the old one or the new one. */
#ifndef TRANSFER_PLACE_H
#define TRANSFER_PLACE_H

#include <stdbool.h>
#include <stddef.h>

#include "commands/transfer/stream.h"
#include "tools/text_editor/edit_beside.h"

/* A file that is being written. */
struct placing {
    int dir; /* the caller's */
    const char *name;
    int fd; /* -1: none */
    bool nameless, in_place;
    struct beside beside;
};

/* 0, or -1 with errno. */
int placing_open(struct placing *p, int dir, const char *name, mode_t mode);
int placing_done(struct placing *p);
/* Whatever has become of it. */
void placing_release(struct placing *p);

/* Owner (where `archive`), attributes, mode and times, of an open file or directory. -1 with errno. */
int place_facts(int fd, const struct entry *e, bool archive, bool sets_mode);

/* Makes a link, with no mask for modes, a FIFO or (target_dir, target) another name of a file. -1 with errno.
 */
int place_special(const struct entry *e, bool archive, int dir, const char *name, int target_dir,
                  const char *target);

#endif
