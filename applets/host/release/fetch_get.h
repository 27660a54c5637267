/* One GET over https: redirects followed, never to anything but https, the body handed on as it comes. */
#ifndef RELEASE_FETCH_GET_H
#define RELEASE_FETCH_GET_H

#include <stdbool.h>
#include <stddef.h>

#include "err.h"
#include "http_response.h"

struct fetch_options {
    const char *trust; /* a file of certificates; NULL: the system's */
    int timeout_ms;    /* silence that is endured; in so long a time more than a trickle has to come */
};

/* What a failure means: */
enum fetch_failure {
    FETCH_FINAL, /* it is no use to try again */
    FETCH_CUT,   /* the network failed while the answer came: it's worth it */
    FETCH_SLOW,  /* it came too slowly: at another time, perhaps */
};

struct fetch_sink {
    /* Before the first byte of a body with status 2xx. -1 with err gives up. */
    int (*begin)(void *arg, const struct http_response *head, struct err *err);
    int (*body)(void *arg, const char *data, size_t n, struct err *err);
    void *arg;
};

/* Asks for the bytes from `from` on (0: all). 0: a whole answer came, *status is 200, 206, 404 or 416. -1
 * with ERR_TOOL and *failure otherwise. Of an answer that isn't a file only the head is read. */
int fetch_get(const struct fetch_options *options, const char *address, unsigned long long from,
              const struct fetch_sink *sink, int *status, enum fetch_failure *failure, struct err *err);

#endif
