/* People who look into a session: its terminal as it is, live, for several at once.
 *
 * A viewer is a connected socket. To it: what programs write, raw. From it: frames of a type, a length in two
 * bytes (big-endian) and that many bytes: ATTACH_INPUT what is typed, ATTACH_SIZE rows and columns, two bytes
 * each. A viewer that doesn't read is dropped. */
#ifndef APPLETS_BASH_SESSION_SESSION_ATTACH_H
#define APPLETS_BASH_SESSION_SESSION_ATTACH_H

#include <stddef.h>

#include "buf.h"
#include "err.h"
#include "loop.h"

enum { ATTACH_INPUT = 'i', ATTACH_SIZE = 's', ATTACH_FRAME_MAX = 4096 };

/* What viewers do, and that the last one has left. */
struct viewers_owner {
    void (*typed)(void *arg, const char *keys, size_t n);
    void (*sized)(void *arg, unsigned short rows, unsigned short cols);
    void (*left)(void *arg);
};

struct viewer;

struct viewers {
    struct loop *loop;
    const struct viewers_owner *owner;
    void *arg; /* the owner's */
    struct viewer *first;
    struct buf recent; /* raw output, for those to come */
};

/* Opens a socket in the directory for one viewer to come within five seconds; its owner name (ipc.h) into
 * `name`. */
int viewers_invite(struct viewers *of, int dirfd, char *name, size_t size, struct err *err);

/* What the terminal's programs have written goes to the viewers, and is remembered for those to come. */
void viewers_show(struct viewers *of, const char *data, size_t n);

/* There is nothing more to see: each leaves once it has all that was shown. */
void viewers_dismiss(struct viewers *of);

#endif
