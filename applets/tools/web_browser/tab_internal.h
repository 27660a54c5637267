/* Shared by the files of tabs alone: tab_events.c calls tab_targets.c, and both tab.c. */
#ifndef APPLETS_WEB_BROWSER_TAB_INTERNAL_H
#define APPLETS_WEB_BROWSER_TAB_INTERNAL_H

#include "tab.h"

/* ---- tab.c ---- */

/* A member as text, NULL when it isn't there; free it. */
char *member_dup(struct span object, const char *key);
bool member_is(struct span object, const char *key, const char *text);

void ids_clear(struct ids *ids);
/* Takes the id (NULL: none). */
void ids_set(struct ids *ids, char *id, bool there);

/* Takes the text: why what is done at the moment fails. */
void tabs_fail(struct tabs *tabs, char *why);

/* The tab that a session belongs to, as its page's or as a frame's. */
struct tab *tab_of(const struct tabs *tabs, const char *session);
void tabs_unlink(struct tabs *tabs, struct tab *tab);

/* ---- tab_targets.c ---- */

/* Asks something of a page or a frame, and nobody waits for the answer. */
void tab_call(struct tabs *tabs, const char *session, const char *method, const char *params);

/* Events; `parent` is the session that one came over. */
void tabs_attached(struct tabs *tabs, const char *parent, struct span params);
void tabs_detached(struct tabs *tabs, struct span params);
void tab_crashed(struct tabs *tabs, struct tab *t, const char *session);

#endif
