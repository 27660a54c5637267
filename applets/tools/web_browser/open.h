/* Opening a session: a browser with one empty page in a context of its own. */
#ifndef APPLETS_WEB_BROWSER_OPEN_H
#define APPLETS_WEB_BROWSER_OPEN_H

#include "web.h"

/* Waits until the browser answers, or is known not to; before the keeper's own loop runs. `web` is zero;
 * `ended` as of browser_start, from then on. -1 with ERR_TOOL, and nothing is left. */
int web_open(struct web *web, const struct keeper *k, struct browser_wish *wish, void (*ended)(void *arg),
             struct err *err);

/* From now on downloads go there (tab_downloads.h); takes it. */
void web_take_downloads(struct web *web, const struct downloads *downloads);
/* Pages whose certificate is not trusted are shown. */
void web_accept_certificates(struct web *web);

#endif
