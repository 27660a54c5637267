/* A session whose server runs elsewhere: a child of ours that speaks on its stdin and stdout (`mcp serve --in
 * TARGET`), and who of the clients by HTTP is to get what it says.
 *
 * Requests go to it by numbers of our own, so that those of any number of clients can share it; answers,
 * progress and acknowledgements get the client's own names back. */
#ifndef APPLETS_MCP_SERVE_SERVE_RELAY_H
#define APPLETS_MCP_SERVE_SERVE_RELAY_H

#include <stdbool.h>

#include "json.h"
#include "loop.h"

struct relay;
struct serve_far;
struct sse;

/* Whom the relay tells. */
struct relay_owner {
    void (*said)(struct sse *stream, struct span message, bool last);
    void (*over)(void *arg); /* its process has ended, and all that was open has been answered */
    void *arg;
};

/* Starts the child. `many`: of any number of clients. NULL with err. */
struct relay *relay_new(struct loop *loop, const struct serve_far *far, const char *target, bool many,
                        const struct relay_owner *owner, struct err *err);

/* A message, or several in an array; what it asks for is answered to the stream. */
void relay_message(struct relay *r, struct sse *stream, struct span text);
bool relay_is_busy(const struct relay *r);

/* Nobody waits for what the stream asked for. */
void relay_cancel(struct relay *r, struct sse *stream);

/* The session ends: all of its calls, and the child soon. */
void relay_end(struct relay *r);
void relay_free(struct relay *r); /* NULL is fine */

#endif
