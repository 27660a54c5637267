#include "mux_relay.h"

#include <stdlib.h>
#include <string.h>

#include "mem.h"

struct relayed {
    struct relayed *next, **link;
    void *client;
    uint32_t theirs, ours;
    bool client_ended, far_ended;
};

struct mux_relay {
    struct buf *far;
    struct buf *(*near)(void *client);
    struct relayed *first;
    uint32_t numbers;
};

struct mux_relay *mux_relay_new(struct buf *far, struct buf *(*near)(void *client))
{
    struct mux_relay *r = mem_zalloc(sizeof *r);
    r->far = far;
    r->near = near;
    return r;
}

static void drop(struct relayed *s)
{
    *s->link = s->next;
    if (s->next)
        s->next->link = s->link;
    free(s);
}

void mux_relay_free(struct mux_relay *r)
{
    while (r->first)
        /* What was dropped is in the list no more. NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
        drop(r->first);
    free(r);
}

/* One that is in use comes to the front. */
static struct relayed *found(struct mux_relay *r, struct relayed *s)
{
    if (!s || s == r->first)
        return s;
    *s->link = s->next;
    if (s->next)
        s->next->link = s->link;
    s->next = r->first;
    s->next->link = &s->next;
    s->link = &r->first;
    r->first = s;
    return s;
}

static struct relayed *add(struct mux_relay *r, void *client, uint32_t theirs)
{
    struct relayed *s = mem_zalloc(sizeof *s);
    *s = (struct relayed){
        .next = r->first, .link = &r->first, .client = client, .theirs = theirs, .ours = ++r->numbers};
    if (s->next)
        s->next->link = &s->next;
    r->first = s;
    return s;
}

static void pass_on(struct buf *out, uint32_t number, const struct mux_frame *f)
{
    mux_frame_put(out, f->kind, number, f->data.s, f->data.n);
}

void mux_relay_from_client(struct mux_relay *r, void *client, const struct mux_frame *f)
{
    struct relayed *s = r->first;
    while (s && !(s->client == client && s->theirs == f->stream))
        s = s->next;
    s = found(r, s);
    if (!s && f->kind == MUX_OPEN)
        s = add(r, client, f->stream);
    if (!s)
        return; /* what has crossed with a reset */
    pass_on(r->far, s->ours, f);
    s->client_ended = s->client_ended || f->kind == MUX_END;
    if (f->kind == MUX_RESET || (s->client_ended && s->far_ended))
        drop(s);
}

void mux_relay_from_far(struct mux_relay *r, const struct mux_frame *f)
{
    struct relayed *s = r->first;
    while (s && s->ours != f->stream)
        s = s->next;
    s = found(r, s);
    if (!s)
        return;
    pass_on(r->near(s->client), s->theirs, f);
    s->far_ended = s->far_ended || f->kind == MUX_END;
    if (f->kind == MUX_RESET || (s->client_ended && s->far_ended))
        drop(s);
}

void mux_relay_forget(struct mux_relay *r, const void *client)
{
    static const char why[] = "its client has gone";
    for (struct relayed *s = r->first, *next; s; s = next) {
        next = s->next;
        if (s->client != client)
            continue;
        mux_frame_put(r->far, MUX_RESET, s->ours, why, sizeof why - 1);
        drop(s);
    }
}

bool mux_relay_is_used(const struct mux_relay *r)
{
    return r->first != NULL;
}
