/* What pages have the browser download: refused, or put into a folder, under names that nothing there has. */
#ifndef APPLETS_WEB_BROWSER_TAB_DOWNLOADS_H
#define APPLETS_WEB_BROWSER_TAB_DOWNLOADS_H

#include <stdbool.h>
#include <stddef.h>

#include "err.h"
#include "json.h"

#define DOWNLOADS_MAX 200 /* that are remembered */

struct tabs;

struct download {
    char *id; /* the browser's, and the file's name until it is whole */
    char *url, *name;
    long long bytes, total; /* total 0: not known */
    const char *state;      /* "running", "done", "canceled", or why it could not be kept */
    bool awaited;           /* it has begun since downloads_watch, and runs */
};

struct downloads {
    int dirfd; /* the folder; < 0: they are refused */
    char *dir; /* its path */
    struct download *list;
    size_t n;
};

/* Opens the folder (NULL: none is wanted). `d` is empty. */
int downloads_open(struct downloads *d, const char *dir, struct err *err);

/* Those that have begun so far are not waited for any more. */
void downloads_watch(struct downloads *d);
bool downloads_awaited(const struct downloads *d);
/* Notes of those that are waited for how far they are. */
void downloads_note(struct tabs *tabs);

/* Events. */
void download_begins(struct tabs *tabs, struct span params);
void download_goes_on(struct tabs *tabs, struct span params);

#endif
