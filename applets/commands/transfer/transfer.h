/* `toolbox transfer`: the halves of `toolbox cp` and `toolbox sync`, of which each runs where the files are,
 * with one stream (stream.h) between them. */
#ifndef TRANSFER_H
#define TRANSFER_H

#include <stdbool.h>

#include "applet.h"

extern const struct applet transfer_applet;

/* What the commands are told, in one word of letters: */
struct transfer_options {
    bool archive;   /* a: owners, all bits of modes, extended attributes */
    bool recursive; /* r: directories; links as links */
    bool exact;     /* x: directories that are there get modes and times too */
    bool deletes;   /* d: what isn't in the source is removed */
    bool differing; /* u: only what differs; its list (list.h) comes on stdin */
    bool sums;      /* c: by content */
    bool watches;   /* w: goes on */
    bool total;     /* t: says first how much there is */
};

int transfer_main(int argc, char **argv);

/* What each does; the list of words ends with NULL. The exit status. */
int transfer_send(const struct transfer_options *o, char *const *excludes, char *const *paths);
int transfer_take(const struct transfer_options *o, const char *to, char *const *names);
int transfer_list(const struct transfer_options *o, char *const *excludes, const char *to,
                  char *const *names);

#define TRANSFER_TOTAL "toolbox-total: " /* and a number of bytes: a line on stderr of who sends */
#define TRANSFER_SAME "toolbox-same: "   /* and how many files were there already */
enum { TRANSFER_AGAIN = 75 };            /* exit status: changes were lost; all is to be compared again */

/* Where a path's last part begins, and how long it is, slashes behind it aside; *n may be 0. */
const char *transfer_last_part(const char *path, size_t *n);
/* The name that a source has in a stream: its path's last part, or "." where that names none. free() it. */
char *transfer_name(const char *path);

/* Says on stderr what can't be done with a path; after so many only counts. */
void transfer_complain(const char *path, const char *why);
extern int transfer_complaints;
/* What is no failure. */
void transfer_note(const char *path, const char *what);

#endif
