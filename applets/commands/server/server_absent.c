/* Answers to calls for keepers that aren't there. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

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

int server_session_owner(const struct session_kind *kind, const char *name, char owner[IPC_NAME_MAX],
                         struct err *err)
{
    char file[IPC_NAME_MAX];
    if (strncmp(name, kind->prefix, strlen(kind->prefix)) != 0 || ipc_name(file, name) != 0)
        return err_set(err, ERR_TOOL, "there is no %s session '%.100s'; open one with %s", kind->what, name,
                       kind->opens);
    snprintf(owner, IPC_NAME_MAX, "%s", name);
    return 0;
}

bool server_session_gone(const struct session_kind *kind, struct rpc_call *call, const char *method,
                         const char *owner, int dirfd)
{
    struct err err;
    bool was_there = ipc_exists(dirfd, owner);
    if (was_there && strcmp(method, kind->closes) == 0) {
        rpc_null(call);
        return true;
    }
    if (was_there)
        err_set(&err, ERR_TOOL, "the %s session %s has ended; open a new one with %s", kind->what, owner,
                kind->opens);
    else
        err_set(&err, ERR_TOOL, "there is no %s session '%s'; open one with %s", kind->what, owner,
                kind->opens);
    rpc_fail(call, &err);
    return true;
}
