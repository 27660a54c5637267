/* The requests of pages, the newest ones, and what pages have written to their console. */
#ifndef APPLETS_WEB_BROWSER_TAB_TRAFFIC_H
#define APPLETS_WEB_BROWSER_TAB_TRAFFIC_H

#include <stdbool.h>

#include "buf.h"
#include "json.h"

#define TRAFFIC_MAX 200 /* requests that are remembered */

struct tabs;

struct request {
    char *id;      /* NULL: none */
    char *session; /* over which it was told */
    char *method, *url, *type, *mime_type, *error;
    int status; /* 0: no answer yet */
    long long bytes;
};

struct traffic {
    struct request list[TRAFFIC_MAX];
    unsigned long long n; /* of all that there were; the newest is [(n - 1) % TRAFFIC_MAX] */
    struct buf *console;  /* elements of a JSON array, while somebody listens; or NULL */
};

/* An event of a page or a frame, whichever it is. */
void traffic_event(struct tabs *tabs, const char *session, const char *method, struct span params);

/* Appends an array of those in whose address `filter` stands (NULL: of all), the oldest first. */
void traffic_put(const struct traffic *t, const char *filter, struct buf *out);

/* By the id that is shown there; NULL: there is none (any more). */
const struct request *traffic_find(const struct traffic *t, long long id);

#endif
