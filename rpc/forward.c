#include "client.h"

#include <errno.h>
#include <stdlib.h>

#include "mem.h"

struct forward {
    struct rpc_call *call;
    struct client *client;
    void (*untaken)(struct rpc_call *call, void *arg);
    void *arg;
};

static void end(struct forward *f, bool delivered)
{
    client_end(f->client, delivered);
    free(f);
}

static void on_abandon(void *arg)
{
    end(arg, false);
}

static void on_delivered(void *arg, bool delivered)
{
    end(arg, delivered);
}

static void on_answer(void *arg, struct span answer, const struct err *err)
{
    struct forward *f = arg;
    if (err && errno == ECONNRESET && f->untaken) {
        struct forward again = *f;
        rpc_on_abandon(f->call, NULL, NULL);
        end(f, false);
        again.untaken(again.call, again.arg);
        return;
    }
    if (err) {
        struct err ended;
        err_set(&ended, ERR_TOOL, "the session, job or MCP server ended while the call was open (%s)",
                err->msg);
        rpc_fail(f->call, &ended);
        end(f, false);
        return;
    }
    rpc_on_delivered(f->call, on_delivered, f);
    rpc_response(f->call, answer);
}

void rpc_forward(struct rpc_call *call, struct loop *loop, int fd,
                 void (*untaken)(struct rpc_call *call, void *arg), void *arg)
{
    struct forward *f = mem_zalloc(sizeof *f);
    *f = (struct forward){.call = call, .untaken = untaken, .arg = arg};
    rpc_on_abandon(call, on_abandon, f);
    f->client = client_start(loop, fd, rpc_request_text(call), -1, on_answer, f);
}
