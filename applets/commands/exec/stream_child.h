/* What a stream's own process would answer, where that takes long: in a process of its own, so that other
 * calls of the stream go on. */
#ifndef EXEC_STREAM_CHILD_H
#define EXEC_STREAM_CHILD_H

#include <stdbool.h>

#include "buf.h"
#include "loop.h"
#include "span.h"

struct stream_child;

/* Whether a method goes through trees or large contents. */
bool stream_child_is_for(const char *method);
/* `done` gets the answer once, empty where there is none. NULL: there can be no process (now). */
struct stream_child *stream_child_start(struct loop *loop, const char *method, struct span request,
                                        void (*done)(void *arg, struct buf *answer), void *arg);
/* After `done`, or before: what only looks is ended, what changes something goes on to its end. */
void stream_child_end(struct stream_child *c);

#endif
