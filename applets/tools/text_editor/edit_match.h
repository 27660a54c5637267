/* Where old_str stands in a file, and what comes in its place. */
#ifndef EDIT_MATCH_H
#define EDIT_MATCH_H

#include "buf.h"
#include "edit_file.h"
#include "err.h"
#include "text_editor_types.h"

struct edit_wish {
    const struct text *old, *new;
    bool all;           /* wherever it stands, else it has to be one place */
    long long expected; /* so many places exactly; 0: not said */
};

/* What leads from the content to the new one. */
struct edit_found {
    struct splice s;
    struct buf put; /* what comes in, when it isn't new_str itself */
    bool crlf;      /* line ends of new_str were changed */
    size_t count;
    struct buf lines; /* the places, as words */
};
#define EDIT_FOUND_INIT                                                                                      \
    {                                                                                                        \
        .put = BUF_INIT, .lines = BUF_INIT                                                                   \
    }
void edit_found_release(struct edit_found *f);
#define EDIT_FOUND_AUTO __attribute__((cleanup(edit_found_release)))

/* Finds the place or the places of `old` in the content. Exact bytes come first. When they don't occur, a LF
 * of old_str may stand for a CRLF of the file, and the replacement takes the line ends of what it replaces.
 * In a file with CRLF alone, a new_str that brings lines into one gets CRLF too. ERR_TOOL when there aren't
 * as many as there have to be: what is near, or the lines of all. `shown` names the file. */
int edit_match(const char *data, size_t n, const struct edit_wish *wish, const char *shown,
               struct edit_found *found, struct err *err);

/* The text becomes lines of its own behind line `line`; a line end is taken over from the line in front, or
 * else the one behind. */
int edit_insertion(const char *data, size_t n, long long line, const struct text *text, const char *shown,
                   struct buf *put, struct splice *s, struct err *err);

/* Appends text with the line ends `crlf` or as they are. */
void edit_put_lines(struct buf *out, const char *s, size_t n, bool crlf);

#endif
