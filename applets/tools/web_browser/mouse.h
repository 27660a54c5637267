/* What a mouse does at an element: clicks of every kind, hovering, dragging. */
#ifndef APPLETS_WEB_BROWSER_MOUSE_H
#define APPLETS_WEB_BROWSER_MOUSE_H

#include "web.h"

/* A step: refuses params that don't go together. */
void mouse_check(struct action *a);
/* It is a click with the left button, once, which elements may need otherwise than by a mouse. */
bool mouse_clicks(const struct action *a);
/* Takes where the element is from the answer of element_place; false, said: nowhere. */
bool mouse_aim(struct action *a);
/* Whether that is in the window. */
bool mouse_reaches(const struct action *a);
/* Does there what params.how says. */
void mouse_act(struct action *a);

#endif
