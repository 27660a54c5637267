/* Numbered views, as `cat -n` prints them: the number in 6 columns, a tab, the line (for hosts of inspect_ai
 * with its tabs expanded, as they know it).
 *
 * Bytes are fed in pieces of any size, in the order of the text; nothing is kept but the answer, so that the
 * size of a file doesn't matter. A CR in front of a LF is left out, any other is shown as U+240D, and bytes
 * that are no UTF-8 as U+FFFD. A view ends at EDIT_ANSWER_MAX characters, in front of a line where it can,
 * else inside one. */
#ifndef EDIT_VIEW_H
#define EDIT_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "buf.h"
#include "err.h"
#include "text_editor_types.h"

struct view {
    struct buf *out;
    long long line;                       /* number of the line that comes next, or is being printed */
    size_t chars;                         /* printed so far, numbers and ends of lines included */
    size_t column;                        /* in the line */
    size_t start, line_start;             /* bytes of out in front of the view, and of the line */
    unsigned long long taken, line_taken; /* bytes fed, and fed in front of the line */
    bool begun;                           /* the line's number has been printed */
    bool cr;                              /* a CR was fed whose meaning depends on what follows */
    bool full;
    bool expands;            /* tabs are shown as blanks */
    bool bad_bytes, lone_cr; /* something is shown by a stand-in */
    struct {
        char bytes[4];
        size_t n;
    } part; /* a character that isn't complete yet */
};

/* Starts a view behind what is in `out`, with the number of its first line. */
void view_begin(struct view *v, struct buf *out, long long line);

/* Takes bytes up to and including the end of line `last` (-1: all of them). False when nothing more is
 * wanted: the view is full or the last line complete. */
bool view_feed(struct view *v, const char *s, size_t n, long long last);

/* The text ends here: prints what is the last line, also when it is empty. */
void view_end_of_text(struct view *v);

/* Says below the view what is to be known about it. `following`: bytes of the text behind the ones fed, -1:
 * not known. */
void view_notes(struct view *v, long long following);

/* Shows a file that is open for reading, from its begin. `range` as in edit_request; `shown` names the file
 * in errors. */
int view_file(int fd, const struct stat *st, const struct ints *range, const char *shown, struct buf *out,
              struct err *err);

#endif
