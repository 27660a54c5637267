/* Output of which no more than so many bytes are to be shown: its first lines and its last, and between them
 * a line that says how much was left out. Only a line that is longer than all that is cut itself. */
#ifndef APPLETS_BASH_SESSION_BASH_SESSION_CUT_H
#define APPLETS_BASH_SESSION_BASH_SESSION_CUT_H

#include <stdbool.h>

#include "buf.h"

struct cut {
    size_t head_max, tail_max; /* bytes of each */
    size_t head;               /* shown so far */
    char last;                 /* the last byte of that */
    bool closed;               /* what comes belongs to the last lines */
    struct buf tail;           /* not shown yet */
    unsigned long long left_out;
};
#define CUT_INIT(head, tail_)                                                                                \
    {                                                                                                        \
        .head_max = (head), .tail_max = (tail_), .tail = BUF_INIT                                            \
    }

/* Takes output in, and appends what can be shown by now. */
void cut_feed(struct cut *c, const char *data, size_t n, struct buf *out);
/* Appends the rest: nothing more comes. */
void cut_end(struct cut *c, struct buf *out);
void cut_release(struct cut *c);
#define CUT_AUTO __attribute__((cleanup(cut_release)))

#endif
