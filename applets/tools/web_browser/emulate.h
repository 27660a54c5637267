/* What a session is told by web_emulate and web_state, as lists of calls (tab_overrides.h). */
#ifndef APPLETS_WEB_BROWSER_EMULATE_H
#define APPLETS_WEB_BROWSER_EMULATE_H

#include <stdbool.h>

#include "buf.h"
#include "err.h"
#include "json.h"
#include "web_types.h"

/* What calls would take back that change something beside it. */
struct emulated {
    char *user_agent, *language;
    bool place;
};

/* `context` is the browser's. -1 with ERR_PARAMS. */
int emulate_calls(const struct web_emulate_params *p, struct emulated *e, const char *context,
                  struct buf *list, struct err *err);

/* Cookies, and what stands in the local storage of origins; what isn't such a thing is passed over. */
void state_calls(struct span state, const char *context, struct buf *list);

#endif
