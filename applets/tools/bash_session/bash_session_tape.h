/* Methods of a session's keeper: who watches it, and its recording. */
#ifndef APPLETS_BASH_SESSION_BASH_SESSION_TAPE_H
#define APPLETS_BASH_SESSION_BASH_SESSION_TAPE_H

#include "bash_session_types.h"
#include "rpc.h"
#include "session.h"

#ifdef TOOLBOX_GUEST
#define session_begin_record(s, p, name, err) 0
#else
void session_watch(struct rpc_call *call, struct span params, struct session *s);
void session_record(struct rpc_call *call, struct span params, struct session *s);
/* Begins a recording of the session that is called so. -1 with what is wrong. */
int session_begin_record(struct session *s, const struct record_params *p, const char *name, struct err *err);
#endif

#endif
