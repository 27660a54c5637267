/* A search under way. In a large tree several processes do a share of the files each: all go through the
 * whole tree, and what they find is put together in the order of the files. */
#ifndef FILE_SEARCH_H
#define FILE_SEARCH_H

#include <sys/types.h>

#include "tools/file/file_find.h"
#include "tools/file/search_text.h"

#define SEARCH_OUTPUT_MAX (512u << 10)
#define SEARCH_PROCESSES 4

struct expression;

struct search_share {
    unsigned of, mine;       /* so many processes, and which this is; 0 is the first */
    bool alone;              /* there are to be no others */
    unsigned long long file; /* that it is at, of those that may be searched */
    pid_t pids[SEARCH_PROCESSES];
    int pipes[SEARCH_PROCESSES]; /* from those */
};

struct search {
    const struct file_seek *seek;
    struct walk walk;
    const char *start; /* of paths */
    struct {
        bool plain; /* it is a text */
        struct buf sought;
        struct search_text text; /* that each match has; empty: unknown */
        struct expression *expression;
    } pattern;
    long long left, deadline_ms, status_ms;
    struct search_files {
        unsigned long long searched, binary, large, unreadable;
    } files;
    bool full, late;
    struct buf data, found; /* a file; the matches, each behind its struct search_match */
    struct search_share share;
};

/* Whether the next file is this process's to search. */
bool search_is_mine(struct search *s);
/* A match is appended to s->found between the two. */
size_t search_begin_match(struct search *s);
void search_end_match(struct search *s, size_t at);
/* Appends the matches of all, with commas between them, and adds up the rest in *s. A process with a share
 * ends here. -1: one has ended before it was done. */
int search_gather(struct search *s, struct buf *answer);

#endif
