/* What is served elsewhere: which targets, and messages in which other names stand for those of the client.
 */
#ifndef APPLETS_MCP_SERVE_SERVE_FAR_H
#define APPLETS_MCP_SERVE_SERVE_FAR_H

#include <stdbool.h>

#include "json.h"

struct serve_far {
    char **patterns; /* of targets, as --in has them */
    size_t n;
    char **rest; /* the other options of `mcp serve --in TARGET`; NULL at the end */
};

/* The target that a path behind /mcp means; NULL: none of those that are served. free() it. */
char *far_target(const struct serve_far *far, const char *path);

struct edit {
    struct span what; /* a part of the text */
    const char *with;
};

/* Appends the text with n edits, which are in any order and done with afterwards. */
void far_put_edited(struct buf *out, struct span text, struct edit *edits, size_t n);

/* A member of that kind of what may be an object. */
bool far_inside(struct span object, const char *key, enum json_kind kind, struct span *value);

#endif
