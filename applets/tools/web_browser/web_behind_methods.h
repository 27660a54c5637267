/* Methods of a session that are about the browser rather than a page. */
#ifndef APPLETS_WEB_BROWSER_WEB_BEHIND_METHODS_H
#define APPLETS_WEB_BROWSER_WEB_BEHIND_METHODS_H

#include "rpc.h"

/* Handlers of web_keeper_methods: ctx begins with the struct web. */
void web_upload(struct rpc_call *call, struct span params, void *ctx);
void web_emulate(struct rpc_call *call, struct span params, void *ctx);
void web_state(struct rpc_call *call, struct span params, void *ctx);
void web_devtools(struct rpc_call *call, struct span params, void *ctx);

#endif
