/* What every page of a session is told at its beginning, beside what all sessions' are. */
#ifndef APPLETS_WEB_BROWSER_TAB_OVERRIDES_H
#define APPLETS_WEB_BROWSER_TAB_OVERRIDES_H

#include "buf.h"
#include "json.h"

struct tabs;

/* A list of calls: elements of a JSON array, a method and its params by turns. */
struct overrides {
    struct buf list;
};

/* Appends one to such a list. */
void overrides_put(struct buf *list, const char *method, const char *params);
/* Takes them over, in place of earlier ones of the same method, for pages to come. */
void overrides_keep(struct tabs *tabs, struct span list);
/* Calls all of them; nobody waits for the answers. */
void overrides_call(struct tabs *tabs, const char *session, struct span list);
void overrides_begin_page(struct tabs *tabs, const char *session);

#endif
