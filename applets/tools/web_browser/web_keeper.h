/* The keeper of a browser session. */
#ifndef APPLETS_WEB_BROWSER_WEB_KEEPER_H
#define APPLETS_WEB_BROWSER_WEB_KEEPER_H

#include "keeper.h"
#include "rpc.h"

/* Runs in the keeper (keeper_start_fn): arg is a struct starting with struct web_session_params. */
int web_start_in_keeper(struct keeper *k, void *arg, struct err *err);

/* The methods that a session's keeper answers. */
extern const struct rpc_method web_keeper_methods[];

#endif
