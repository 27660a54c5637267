/* People who look into a session: its terminal as it is, live, for several at once.
 *
 * A viewer is a connected socket. To it: what programs write, raw. From it: frames of a type, a length in two
 * bytes (big-endian) and that many bytes: ATTACH_INPUT what is typed, ATTACH_SIZE rows and columns, two bytes
 * each. A viewer that doesn't read is dropped. */
#ifndef APPLETS_BASH_SESSION_SESSION_ATTACH_H
#define APPLETS_BASH_SESSION_SESSION_ATTACH_H

#include <stddef.h>

#include "err.h"

struct session;

enum { ATTACH_INPUT = 'i', ATTACH_SIZE = 's', ATTACH_FRAME_MAX = 4096 };

/* Opens a socket in the directory for one viewer to come within five seconds; its owner name (ipc.h) into
 * `name`. */
int session_attach(struct session *s, int dirfd, char *name, size_t size, struct err *err);

/* What the terminal's programs have written goes to the viewers, and is remembered for those to come. */
void session_show(struct session *s, const char *data, size_t n);

#endif
