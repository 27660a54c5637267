/* Addresses: https alone, but for who says otherwise. */
#ifndef RELEASE_FETCH_URL_H
#define RELEASE_FETCH_URL_H

#include <stdbool.h>

#include "err.h"

struct fetch_url {
    char *host; /* without the brackets of an IPv6 address */
    char *port;
    char *authority; /* as the Host field wants it */
    char *path;      /* with the query; begins with '/' */
    bool plain;      /* http */
};

/* Takes an absolute address apart; `url` is zero before. -1 with ERR_TOOL: not https, or not well-formed. */
int fetch_url_parse(const char *text, struct fetch_url *url, struct err *err);
/* The same, and http:// as well. */
int fetch_url_parse_any(const char *text, struct fetch_url *url, struct err *err);
void fetch_url_release(struct fetch_url *url);

/* The absolute address that a redirect from `base` to `location` leads to; free() it. Only shape is looked at
 * here. */
char *fetch_url_resolve(const struct fetch_url *base, const char *location);

#endif
