/* A call whose answer did not come: what to do then. */
#ifndef CALL_UNANSWERED_H
#define CALL_UNANSWERED_H

#include "host/inject/inject_request.h"
#include "host/inject/inject_types.h"
#include "host/inject/target.h"

/* Says what has happened, and by which command the outcome can be had. The exit status. */
int call_unanswered(const struct inject_options *o, const struct target *t, const char *method,
                    struct span params, const struct inject_request *q);

#endif
