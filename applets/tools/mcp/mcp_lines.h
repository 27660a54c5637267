/* From the bytes of a stream to lines, of any length and cut anywhere: linear in the bytes. A line that comes
 * in one piece is given where it was read; any other grows in a buffer of its own, which its taker gets, and
 * which is gone afterwards.
 *
 * The bytes are read straight to where mcp_lines_room says, then mcp_lines_next gives the lines one by one
 * until it says that there is none; only then is there room again. */
#ifndef APPLETS_MCP_MCP_LINES_H
#define APPLETS_MCP_MCP_LINES_H

#include <stdbool.h>
#include <stddef.h>

#include "buf.h"
#include "json.h"
#include "memory_share.h"

#define MCP_LINES_STEP 65536
#define MCP_LINES_GAP 64    /* bytes in front of a line in a buffer, for its taker */
#define MCP_LINES_HEAD 4096 /* what is kept of a line that is too long: its first bytes, */
#define MCP_LINES_TAIL 1024 /* and its last ones */

enum mcp_lines_state { MCP_LINES_NONE, MCP_LINES_LINE, MCP_LINES_TOO_LONG };

struct mcp_lines {
    size_t max;                /* bytes of a line, without its newline */
    struct memory_share share; /* which may be less than max */
    struct buf held;           /* a line that has begun, behind the gap; of one that is too long, its head */
    struct buf tail;
    bool too_long;     /* the line that has begun is, and is thrown away */
    bool whole;        /* `held` is a whole line, to be given next */
    bool given;        /* and it was */
    size_t begin, end; /* of `area`: bytes that are to be split */
    char area[MCP_LINES_STEP];
};

void mcp_lines_init(struct mcp_lines *l, size_t max);
void mcp_lines_release(struct mcp_lines *l);

/* Where to put the next bytes, and how many at the most (never 0). */
char *mcp_lines_room(struct mcp_lines *l, size_t *room);
void mcp_lines_filled(struct mcp_lines *l, size_t n);
/* The stream has ended: what has begun is a line. */
void mcp_lines_finish(struct mcp_lines *l);

/* The next line, without its newline, valid until the next call. Of one that is too long `line` is the head,
 * and l->tail how it ended. */
enum mcp_lines_state mcp_lines_next(struct mcp_lines *l, struct span *line);

/* Whether the line that has begun is the whole of a JSON text already. */
bool mcp_lines_is_message(const struct mcp_lines *l);

/* The line that was just given (MCP_LINES_LINE), behind a gap, as the caller's own; `out` is empty before. */
void mcp_lines_take(struct mcp_lines *l, struct span line, struct buf *out);

#endif
