/* In-process methods for those who ask the server (curl): each call in a process of its own. */
#include <stdlib.h>
#include <unistd.h>

#include "io.h"
#include "mem.h"
#include "server_internal.h"

static void put_answer(void *arg, struct buf *response)
{
    io_write_all(*(int *)arg, response->data, response->len);
}

static void answer_request(void *arg, int out)
{
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
