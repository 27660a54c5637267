/* The bytes between the halves of a copy, and what they say meanwhile. */
#ifndef CP_RELAY_H
#define CP_RELAY_H

#include <stdbool.h>

#include "buf.h"
#include "host/cp/side.h"

/* From one descriptor to another one, both of which are taken. */
struct way {
    int from, to; /* -1: over */
    long long bytes;
    bool copies;     /* they can't be spliced */
    bool waits_room; /* for the other end */
};

enum { WAYS_MAX = 2, HALVES_MAX = 3 };

struct relay {
    const char *applet;
    struct way ways[WAYS_MAX]; /* the first is the one that is shown */
    struct half *halves;       /* whose stderr is passed on */
    int n_halves;
    struct half *reports;                      /* whose stdout is said line by line; NULL: nobody's */
    void (*said)(void *arg, const char *line); /* of those */
    void *arg;
    bool shows;      /* how far it is, on the terminal */
    long long total; /* bytes that are to come; 0: not known */
    long long same;  /* files that were there already */
};

/* Until all of them have ended; the highest of their exit statuses, EXIT_FAILED at least where one was ended
 * by a signal. */
int relay_run(struct relay *r, int statuses[HALVES_MAX]);

/* Bytes for people: "1.5 MB". */
void relay_put_size(struct buf *out, double bytes);

#endif
