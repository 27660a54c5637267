/* Steps on one element of the page: what it is, where it is, clicking it, typing into it. */
#ifndef APPLETS_WEB_BROWSER_ELEMENT_H
#define APPLETS_WEB_BROWSER_ELEMENT_H

#include "web.h"

/* Finds the element that params.element_id names, and its JavaScript object. */
void element_find(struct action *a);
void element_object(struct action *a);
/* By its session and number, which the action has already. */
void element_resolve(struct action *a);

/* Calls a JavaScript function on it, with up to one argument; the result is a string. */
void element_call(struct action *a, const char *function, const struct text *argument);
/* By its own method, as no mouse does it. */
void element_click(struct action *a);
/* Scrolls to it; asks where it is (mouse.h). */
void element_show(struct action *a);
void element_place(struct action *a);
/* The string of the answer; "" when there is none. Appends. */
void element_said(struct action *a, struct buf *text);

#endif
