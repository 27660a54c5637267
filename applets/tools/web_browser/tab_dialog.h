/* Dialogs of pages: answered at once, or left to whoever drives the browser. */
#ifndef APPLETS_WEB_BROWSER_TAB_DIALOG_H
#define APPLETS_WEB_BROWSER_TAB_DIALOG_H

#include <stdbool.h>

#include "buf.h"
#include "json.h"

struct tabs;
struct tab;

struct dialogs {
    bool accept;      /* confirm and prompt are accepted, not dismissed */
    bool ask;         /* none is answered but by web_dialog */
    char *session;    /* of the page that shows one, and waits for the answer; NULL: none does */
    struct buf shown; /* that one, for a line: confirm "Delete it?" */
};

/* An event, of that tab. */
void dialog_opens(struct tabs *tabs, const struct tab *t, struct span params);
/* The one of that page's session, or (NULL) whichever there is, is over. */
void dialog_closes(struct tabs *tabs, const char *session);

#endif
