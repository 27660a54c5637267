/* Finding a browser that speaks the DevTools protocol. */
#ifndef APPLETS_WEB_BROWSER_FIND_H
#define APPLETS_WEB_BROWSER_FIND_H

#include <stdbool.h>

#include "err.h"

/* The path of the program (free it): what $TOOLBOX_BROWSER says, and nothing else where that is set; the
 * first of the usual names in PATH of `env`; one that was brought along with this program (inject --with);
 * one that Playwright has put in its own place. `safe`: those that others can write to, or to what leads
 * there, are passed over (safe_path.h). NULL with ERR_TOOL that says what to do where there is none. */
char *browser_find(char *const *env, bool safe, struct err *err);

#endif
