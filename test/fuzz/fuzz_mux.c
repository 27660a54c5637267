/* Any bytes as frames of a peer, whole and cut in two, to one who takes streams and says things on them: the
 * same is said, in frames; every stream that was opened is closed or reset once; and no more is taken than
 * was granted. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "mux.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct peer {
    struct mux *mux;
    struct buf in, out;
    size_t opened, over;
};

static void opened(void *arg, struct mux_stream *s, struct span params)
{
    struct peer *p = arg;
    p->opened++;
    if (params.n % 5 == 4) {
        p->over++;
        mux_reset(s, "no");
    }
}

/* What it does is in the bytes. */
static void received(void *arg, struct mux_stream *s, struct span data)
{
    struct peer *p = arg;
    assert(s->held <= MUX_WINDOW_MAX);
    char what = data.n > 0 ? data.s[0] : 0;
    if (what % 2 == 0)
        mux_consumed(s, data.n);
    if (what % 3 == 0 && !s->sent_end && s->room >= data.n)
        mux_send(s, data.s, data.n);
    if (what % 7 == 6 && !s->sent_end)
        mux_end(s);
    if (what % 11 == 10 && !s->sent_end) {
        p->over++;
        mux_reset(s, "enough");
    }
}

static void ended(void *arg, struct mux_stream *s)
{
    (void)arg;
    if (!s->sent_end && s->room > 3)
        mux_send(s, "end", 3);
}

static void has_room(void *arg, struct mux_stream *s)
{
    (void)arg;
    assert(s->room <= MUX_WINDOW_MAX);
}

static void closed(void *arg, struct mux_stream *s, struct span why)
{
    struct peer *p = arg;
    (void)s, (void)why;
    p->over++;
}

static void peer_open(struct peer *p)
{
    struct mux_owner owner = {opened, received, ended, has_room, closed, p};
    *p = (struct peer){.in = BUF_INIT, .out = BUF_INIT};
    p->mux = mux_new(&owner, &p->out);
}

/* False: the rest is none. */
static int feed(struct peer *p, const uint8_t *data, size_t n)
{
    struct mux_frame f;
    long took;
    buf_add(&p->in, data, n);
    while ((took = mux_frame_read(buf_str(&p->in), p->in.len, &f)) > 0) {
        mux_take(p->mux, &f);
        buf_consume(&p->in, (size_t)took);
    }
    return took == 0;
}

static void peer_close(struct peer *p)
{
    struct mux_frame f;
    long n;
    for (size_t at = 0; at < p->out.len; at += (size_t)n)
        assert((n = mux_frame_read(p->out.data + at, p->out.len - at, &f)) > 0);
    mux_free(p->mux);
    assert(p->opened == p->over);
    buf_release(&p->in);
    buf_release(&p->out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct peer whole, cut;
    if (size < 1)
        return 0;
    size_t first = data[0] * (size - 1) / 256;
    peer_open(&whole);
    peer_open(&cut);
    feed(&whole, data + 1, size - 1);
    if (feed(&cut, data + 1, first))
        feed(&cut, data + 1 + first, size - 1 - first);
    assert(whole.out.len == cut.out.len);
    assert(whole.out.len == 0 || memcmp(whole.out.data, cut.out.data, whole.out.len) == 0);
    peer_close(&whole);
    peer_close(&cut);
    return 0;
}
