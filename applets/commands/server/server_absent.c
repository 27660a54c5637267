/* Answers to calls for keepers that aren't there. */
#include <errno.h>

#include "ipc.h"
#include "other_builds.h"
#include "relocate.h"
#include "server_internal.h"

void server_no_keeper(struct rpc_call *call, int dirfd, const char *owner, int why)
{
    struct err err;
    if (why == EAGAIN)
        err_set(&err, ERR_TOOL, "%s takes no more calls; is it stopped?", owner);
    else if (ipc_exists(dirfd, owner) || other_builds_used(dirfd, owner))
        err_set(&err, ERR_TOOL, "%s has ended; start a new one", owner);
    else
        err_set(&err, ERR_TOOL, "there is no %s; start one first", owner);
    rpc_fail(call, &err);
}

void server_without_keeper(struct server *s, struct rpc_call *call)
{
    struct rpc_request r;
    char owner[IPC_NAME_MAX];
    struct err err;
    rpc_request_parse(&r, rpc_request_text(call), NULL);
    const struct tool *tool = tool_method(r.method).tool;
    relocate_all();
    server_may_retire(s); /* it may have been the last thing to tell */
    if (tool->keeper_of(r.params, owner, &err) < 0)
        rpc_fail(call, &err);
    else if (!tool->without_keeper || !tool->without_keeper(call, r.method, r.params, owner, s->base.dirfd))
        server_no_keeper(call, s->base.dirfd, owner, ENOENT);
}
