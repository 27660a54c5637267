/* Lists of what a tool's keepers hold: all are asked, and those that are stuck are named as such. */
#include <stdlib.h>

#include "mem.h"
#include "server.h"

#define LIST_MS 5000

struct listing {
    const struct server_listing *how;
    struct rpc_call *call; /* NULL: the client has gone */
    int dirfd;
};

static void on_replies(void *arg, struct reply *replies, size_t n)
{
    struct listing *l = arg;
    struct buf text BUF_AUTO = BUF_INIT;
    buf_addc(&text, '[');
    for (size_t i = 0; i < n; i++) {
        if (replies[i].pid == 0)
            continue;
        if (text.len > 1)
            buf_addc(&text, ',');
        l->how->put(&text, replies[i].name, span_of(&replies[i].result));
    }
    if (l->how->put_more)
        l->how->put_more(&text, l->dirfd);
    buf_addc(&text, ']');
    if (l->call)
        rpc_result(l->call, span_of(&text));
    free(l);
}

static void on_abandoned(void *arg)
{
    ((struct listing *)arg)->call = NULL;
}

void server_list(struct server *s, struct rpc_call *call, const struct server_listing *how)
{
    struct listing *l = mem_zalloc(sizeof *l);
    *l = (struct listing){.how = how, .call = call, .dirfd = server_base(s)->dirfd};
    rpc_on_abandon(call, on_abandoned, l);
    server_ask(s, how->prefix, KEEPER_STATUS, LIST_MS, on_replies, l);
}
