/* What an MCP server has said without being asked: the newest notifications, for those who want them. */
#ifndef APPLETS_MCP_MCP_NOTES_H
#define APPLETS_MCP_MCP_NOTES_H

#include "buf.h"
#include "json.h"

#define MCP_NOTES_MAX 2048           /* notifications, */
#define MCP_NOTES_BYTES (512u << 10) /* and their bytes, that are kept; a longer one isn't */

struct mcp_note;

struct mcp_notes {
    struct mcp_note *first, *last;
    size_t n, bytes;
    unsigned long long taken; /* numbers of those that came: the first that is still there is taken - n + 1 */
    unsigned long long dropped; /* since the last time that was told */
};

/* Keeps one; the oldest make room. */
void mcp_notes_add(struct mcp_notes *notes, struct span notification);

/* Writes the oldest, at most `max`, as the members of an object: `key`, dropped, remaining. They stay
 * until mcp_notes_forget says that they have arrived: with the number that this returns, and the count of
 * dropped ones that was told. */
unsigned long long mcp_notes_put(const struct mcp_notes *notes, const char *key, long long max,
                                 struct buf *out);
void mcp_notes_forget(struct mcp_notes *notes, unsigned long long number, unsigned long long dropped);

#endif
