/* Lists of what a tool's keepers hold: all are asked, and those that are stuck are named as such. */
#include <stdlib.h>

#include "mem.h"
#include "server_internal.h"

#define LIST_MS 2000 /* one keeper is not waited for longer, nor are many: they are asked at once */

struct listing {
    const struct server_listing *how;
    struct server *server;
    struct rpc_call *call; /* NULL: the client has gone */
    struct buf text;
};

static void finish(struct listing *l)
{
    if (l->call)
        rpc_result(l->call, span_of(&l->text));
    buf_release(&l->text);
    free(l);
}

/* They were there before. */
static void on_others(void *arg, struct buf *entries)
{
    struct listing *l = arg;
    struct buf own BUF_AUTO = l->text;
    l->text = (struct buf)BUF_INIT;
    buf_addf(&l->text, "[%s%s%s", buf_str(entries), entries->len > 0 && own.len > 2 ? "," : "", own.data + 1);
    finish(l);
}

static void put_entry(struct listing *l, const struct reply *reply)
{
    buf_addc(&l->text, '{');
    l->how->put_key(&l->text, reply->name);
    if (reply->result.len > 0) {
        buf_addc(&l->text, ',');
        buf_add(&l->text, reply->result.data + 1, reply->result.len - 1); /* its members and '}' */
    } else {
        json_member_string(&l->text, "state", "stuck");
        buf_addc(&l->text, '}');
    }
}

/* Its keeper has ended while it was asked, and left what is listed behind these. */
static bool has_ended(const struct listing *l, const struct reply *reply)
{
    return reply->result.len == 0 && l->how->has_more && l->how->has_more(l->server->base.dirfd, reply->name);
}

static void on_replies(void *arg, struct reply *replies, size_t n)
{
    struct listing *l = arg;
    buf_addc(&l->text, '[');
    for (size_t i = 0; i < n; i++) {
        if (replies[i].pid == 0 || has_ended(l, &replies[i]))
            continue;
        if (l->text.len > 1)
            buf_addc(&l->text, ',');
        put_entry(l, &replies[i]);
    }
    if (l->how->put_more)
        l->how->put_more(&l->text, l->server->base.dirfd);
    buf_addc(&l->text, ']');
    if (!l->call || !server_ask_others(l->server, l->call, on_others, l))
        finish(l);
}

static void on_abandoned(void *arg)
{
    ((struct listing *)arg)->call = NULL;
}

void server_list(struct server *s, struct rpc_call *call, struct span params,
                 const struct server_listing *how)
{
    const struct params_table none = {.ignore_unknown = how->ignore_unknown};
    struct err err;
    if (params_unpack(&none, params, NULL, &err) < 0) {
        rpc_fail(call, &err);
        return;
    }
    struct listing *l = mem_zalloc(sizeof *l);
    *l = (struct listing){.how = how, .server = s, .call = call, .text = BUF_INIT};
    rpc_on_abandon(call, on_abandoned, l);
    server_may_retire(s); /* of a build that was replaced while nothing of it ran nobody else would say so */
    server_ask(s, how->prefix, KEEPER_STATUS, LIST_MS, on_replies, l);
}
