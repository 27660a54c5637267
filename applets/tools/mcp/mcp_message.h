/* What a line of JSON-RPC is, without changing a byte of it. */
#ifndef APPLETS_MCP_MCP_MESSAGE_H
#define APPLETS_MCP_MCP_MESSAGE_H

#include <stdbool.h>

#include "err.h"
#include "json.h"

enum mcp_kind {
    MCP_NOISE, /* no JSON, or nothing of JSON-RPC 2.0 */
    MCP_RESPONSE,
    MCP_REQUEST,
    MCP_NOTIFICATION,
};

/* Spans of the line. */
struct mcp_message {
    enum mcp_kind kind;
    struct span id;     /* s == NULL: none */
    struct span method; /* with its quotes; of a response s == NULL */
    bool failed;        /* a response with an error */
};

void mcp_message_read(struct span line, struct mcp_message *m);

/* Reads what a client wants to be sent (checked JSON, an object, named `field` in the params). -1 with
 * ERR_PARAMS when it is not of that kind. */
int mcp_message_check(struct span message, enum mcp_kind kind, const char *field, struct mcp_message *m,
                      struct err *err);
/* The same of an answer to the server. */
int mcp_response_check(struct span message, struct err *err);

/* Text that is the same for two ids exactly when they are of the same type and value: "a" and "\u0061", 1
 * and 1.0e0, but not 1 and "1". False when it can be no id (neither a string nor a number). */
bool mcp_id_key(struct span id, struct buf *key);

/* The id of a response that is not whole: of which only its first and last bytes are known; s == NULL when it
 * can't be told. */
struct span mcp_id_of_parts(struct span head, struct span tail);

/* Whether a line that is no message was to be a response; *id as above. */
bool mcp_is_broken_response(struct span line, struct span *id);

#endif
