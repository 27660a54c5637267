/* In-process methods for those who ask the server (curl): each call in a process of its own. */
#include <stdlib.h>
#include <unistd.h>

#include "commands/confine/server_policy.h"
#include "io.h"
#include "mem.h"
#include "server_internal.h"

static void put_answer(void *arg, struct buf *response)
{
    io_write_all(*(int *)arg, response->data, response->len);
}

/* What the policy lets it touch. */
static bool enter_policy(struct span request, int out)
{
#ifndef TOOLBOX_GUEST
    struct rpc_request r;
    struct buf text BUF_AUTO = BUF_INIT;
    struct err err;
    if (!server_policy || server_policy_enter(&err) == 0)
        return true;
    rpc_request_parse(&r, request, NULL);
    rpc_put_error(&text, r.id, &err);
    io_write_all(out, text.data, text.len);
    return false;
#else
    (void)request, (void)out;
    return true;
#endif
}

static void answer_request(void *arg, int out)
{
    if (!enter_policy(*(struct span *)arg, out))
        return;
    rpc_take(*(struct span *)arg, tool_find_in_process, NULL, (struct rpc_sink){put_answer, &out});
}

struct doing {
    struct rpc_call *call; /* NULL: the client has gone */
};

static void finish(void *arg, struct buf *answer)
{
    struct doing *d = arg;
    struct err err;
    if (d->call && answer->len > 0) {
        rpc_response(d->call, span_of(answer));
    } else if (d->call) {
        err_set(&err, ERR_INTERNAL, "the process that did the work ended without an answer");
        rpc_fail(d->call, &err);
    }
    free(d);
}

static void on_abandon(void *arg)
{
    ((struct doing *)arg)->call = NULL; /* an edit that has begun is finished */
}

void server_in_process(struct rpc_call *call, struct span params, void *ctx)
{
    struct err err;
    struct span request = rpc_request_text(call);
    struct doing *d = mem_zalloc(sizeof *d);
    (void)params;
    d->call = call;
    if (!server_work(ctx, answer_request, &request, finish, d, &err)) {
        rpc_fail(call, &err);
        free(d);
        return;
    }
    rpc_on_abandon(call, on_abandon, d);
}
