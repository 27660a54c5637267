/* What runs in each document before its own scripts: it watches timers, and cancels what a browser would ask
 * a person about. */
#ifndef APPLETS_WEB_BROWSER_TAB_SCRIPTS_H
#define APPLETS_WEB_BROWSER_TAB_SCRIPTS_H

#include "cdp.h"

/* For the session of a page or a frame, from now on. setTimeout(f, t, token) then says how long the last of
 * the timers that are waited for still takes: "ms:" and a number. */
void tab_scripts_add(struct cdp *cdp, const char *session, const char *token);

#endif
