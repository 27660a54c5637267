/* What real servers write where a message is to be, and which message is meant: a byte order mark or a log's
 * prefix in front of it, several in an array or between CRs, one without "jsonrpc", or with LSP's heads
 * around it. */
#ifndef APPLETS_MCP_MCP_ODD_H
#define APPLETS_MCP_MCP_ODD_H

#include <stdbool.h>

#include "buf.h"
#include "json.h"

/* The texts in a line that is no message, one by one: from *at = 0 on, false at the end. */
bool mcp_odd_next(struct span line, size_t *at, struct span *text);

/* Appends an answer of the protocol for one that has but id and result or error. False: it is none. */
bool mcp_odd_answer(struct span text, struct buf *out);

/* The id of an answer that has neither result nor error; s == NULL: it is none. */
struct span mcp_odd_nothing(struct span text);

/* Whether the line begins an answer of another form, which may not come to its end. */
bool mcp_odd_begins(struct span line);

#endif
