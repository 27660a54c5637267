/* Methods that follow something, over a stream (docs/connection.md, "Subscriptions").
 *
 * Their names end in _follow or _watch. Each is a poll: it takes a cursor, waits until there is something
 * behind that, and gives it with the next `cursor`; `ended` is true in the last. Over a stream the polls are
 * made here, each when the caller has what the one before brought. */
#ifndef EXEC_FOLLOW_H
#define EXEC_FOLLOW_H

#include <stdbool.h>

#include "buf.h"
#include "span.h"

bool follow_is(const char *method);
/* Whether another poll is to come behind this one's answer: then what it brought, and where that begins. */
bool follow_goes_on(struct span answer, struct span *event, struct buf *cursor);
/* Appends the request of that, from the first one's. */
void follow_put_next(struct buf *out, struct span request, const struct buf *cursor);

#endif
