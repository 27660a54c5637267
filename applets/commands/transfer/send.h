/* What sends trees. */
#ifndef TRANSFER_SEND_H
#define TRANSFER_SEND_H

#include "commands/transfer/list.h"
#include "commands/transfer/scan.h"
#include "commands/transfer/stream.h"
#include "commands/transfer/transfer.h"
#include "commands/transfer/twins.h"
#include "commands/transfer/watch.h"

struct sending {
    struct scan scan; /* first */
    const struct transfer_options *o;
    struct buf out;
    struct entry entry;
    struct list there;
    struct twins *twins;
    struct watch *watch; /* NULL: none */
    long long total, same;
};

/* A regular file, as the entry that has been begun. */
void send_file(struct sending *s, int dir, const char *name, const char *path);
/* What goes with -a. */
void send_take_xattrs(struct sending *s, int fd);
void send_flush(struct sending *s, size_t least);
#define SEND_FLUSH (256u << 10)

/* Whether a file has that sum. */
bool send_has_sum(int dir, const char *name, const char *sum);

#endif
