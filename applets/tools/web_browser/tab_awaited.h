/* The document that web_go has asked for, against those that the page before leads to by itself.
 *
 * A page that goes elsewhere every millisecond may have its own navigation begin while the one that was asked
 * for is on its way, and either takes the place of the other: instead of it, or a moment behind it. */
#ifndef APPLETS_WEB_BROWSER_TAB_AWAITED_H
#define APPLETS_WEB_BROWSER_TAB_AWAITED_H

#include <stdbool.h>

struct awaited {
    char *id;      /* what was asked for; NULL: nothing */
    char *came;    /* the last document; NULL: none has come */
    char *started; /* the navigation that began last */
    bool leads;    /* that document has led elsewhere by itself */
    bool overtaken;
};

/* Takes the id of the document that is to come; NULL: none. */
void awaited_set(struct awaited *w, char *id);
/* Takes the id of a navigation that begins; it may be NULL. */
void awaited_starts(struct awaited *w, char *id);
/* A document has come; takes its id. True: what the one before has led to may still come behind it. */
bool awaited_came(struct awaited *w, char *id);
void awaited_release(struct awaited *w);

#endif
