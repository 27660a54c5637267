#include "mux.h"

#include <stdlib.h>
#include <string.h>

#include "mem.h"

struct mux {
    struct mux_owner owner;
    struct buf *out;
    struct mux_stream *first;
    size_t n;
    uint32_t opened; /* number of the last one of ours */
};

/* ---- frames ---- */

uint32_t mux_number(const char *bytes)
{
    const unsigned char *b = (const unsigned char *)bytes;
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

void mux_put_number(char *bytes, uint32_t n)
{
    for (int i = 0; i < 4; i++)
        bytes[i] = (char)(n >> (24 - 8 * i));
}

long mux_frame_read(const char *bytes, size_t n, struct mux_frame *f)
{
    static const char kinds[] = {MUX_OPEN, MUX_DATA, MUX_END, MUX_RESET, MUX_WINDOW};
    if (n > 0 && bytes[0] != MUX_MARK)
        return -1;
    if (n > 1 && !memchr(kinds, bytes[1], sizeof kinds))
        return -1;
    if (n < MUX_HEAD)
        return 0;
    size_t length = mux_number(bytes + 6);
    if (length > (bytes[1] == MUX_OPEN ? MUX_OPEN_MAX : MUX_DATA_MAX) ||
        (bytes[1] == MUX_WINDOW && length != 4))
        return -1;
    if (n < MUX_HEAD + length)
        return 0;
    *f = (struct mux_frame){(enum mux_kind)bytes[1], mux_number(bytes + 2), {bytes + MUX_HEAD, length}};
    return (long)(MUX_HEAD + length);
}

void mux_frame_put(struct buf *out, enum mux_kind kind, uint32_t stream, const void *data, size_t n)
{
    char head[MUX_HEAD] = {MUX_MARK, (char)kind};
    mux_put_number(head + 2, stream);
    mux_put_number(head + 6, (uint32_t)n);
    buf_reserve(out, sizeof head + n);
    buf_add(out, head, sizeof head);
    buf_add(out, data, n);
}

static void put_window(struct buf *out, uint32_t stream, size_t more)
{
    char bytes[4];
    mux_put_number(bytes, (uint32_t)more);
    mux_frame_put(out, MUX_WINDOW, stream, bytes, sizeof bytes);
}

/* ---- streams ---- */

static struct mux_stream *find(const struct mux *m, uint32_t id)
{
    struct mux_stream *s = m->first;
    while (s && s->id != id)
        s = s->next;
    return s;
}

static struct mux_stream *add(struct mux *m, uint32_t id, void *work)
{
    struct mux_stream *s = mem_zalloc(sizeof *s);
    *s = (struct mux_stream){.work = work,
                             .mux = m,
                             .next = m->first,
                             .link = &m->first,
                             .id = id,
                             .room = MUX_WINDOW_MIN,
                             .granted = MUX_WINDOW_MIN,
                             .window = MUX_WINDOW_MIN};
    if (s->next)
        s->next->link = &s->next;
    m->first = s;
    m->n++;
    return s;
}

static void drop(struct mux_stream *s)
{
    *s->link = s->next;
    if (s->next)
        s->next->link = s->link;
    s->mux->n--;
    free(s);
}

static void over(struct mux_stream *s, struct span why)
{
    s->mux->owner.closed(s->mux->owner.arg, s, why);
    drop(s);
}

void mux_reset(struct mux_stream *s, const char *why)
{
    size_t n = strlen(why);
    mux_frame_put(s->mux->out, MUX_RESET, s->id, why, n < MUX_DATA_MAX ? n : MUX_DATA_MAX);
    drop(s);
}

void mux_abort(struct mux_stream *s, const char *why)
{
    struct mux *m = s->mux;
    mux_frame_put(m->out, MUX_RESET, s->id, why, strlen(why));
    over(s, (struct span){why, strlen(why)});
}

/* ---- what the peer says ---- */

static void refuse(struct mux *m, uint32_t id, const char *why)
{
    mux_frame_put(m->out, MUX_RESET, id, why, strlen(why));
}

static void take_open(struct mux *m, const struct mux_frame *f)
{
    if (!m->owner.opened)
        refuse(m, f->stream, "no stream can be opened from that side");
    else if (m->n >= MUX_STREAMS_MAX)
        refuse(m, f->stream, "too many streams are open");
    else
        m->owner.opened(m->owner.arg, add(m, f->stream, NULL), f->data);
}

static void take_data(struct mux_stream *s, struct span data)
{
    if (s->got_end || data.n > s->granted) {
        mux_abort(s,
                  s->got_end ? "bytes came behind the end" : "more bytes came than the window has room for");
        return;
    }
    s->granted -= data.n;
    s->held += data.n;
    s->mux->owner.received(s->mux->owner.arg, s, data);
}

static void take_end(struct mux_stream *s)
{
    if (s->got_end)
        return;
    struct mux *m = s->mux;
    uint32_t id = s->id;
    s->got_end = true;
    m->owner.ended(m->owner.arg, s);
    s = find(m, id); /* the owner may have reset it */
    if (s && s->sent_end)
        over(s, (struct span){0});
}

static void take_window(struct mux_stream *s, uint32_t more)
{
    if (more > MUX_WINDOW_MAX || s->room + more > MUX_WINDOW_MAX) {
        mux_abort(s, "the window is larger than any may be");
        return;
    }
    s->room += more;
    if (!s->sent_end)
        s->mux->owner.has_room(s->mux->owner.arg, s);
}

void mux_take(struct mux *m, const struct mux_frame *f)
{
    struct mux_stream *s = find(m, f->stream);
    if (f->kind == MUX_OPEN && !s)
        take_open(m, f);
    else if (f->kind == MUX_OPEN)
        mux_abort(s, "it was opened twice");
    else if (!s)
        return; /* what has crossed with our reset */
    else if (f->kind == MUX_DATA)
        take_data(s, f->data);
    else if (f->kind == MUX_END)
        take_end(s);
    else if (f->kind == MUX_WINDOW)
        take_window(s, mux_number(f->data.s));
    else
        over(s, f->data);
}

/* ---- what we say ---- */

struct mux_stream *mux_open(struct mux *m, struct span params, void *work)
{
    struct mux_stream *s = add(m, ++m->opened, work);
    mux_frame_put(m->out, MUX_OPEN, s->id, params.s, params.n);
    return s;
}

void mux_send(struct mux_stream *s, const void *data, size_t n)
{
    const char *at = data;
    s->room -= n;
    for (size_t step; n > 0; at += step, n -= step) {
        step = n < MUX_DATA_MAX ? n : MUX_DATA_MAX;
        mux_frame_put(s->mux->out, MUX_DATA, s->id, at, step);
    }
}

/* The window of one that is read as it comes grows; it is granted in large steps. */
void mux_consumed(struct mux_stream *s, size_t n)
{
    s->held -= n;
    if (s->got_end)
        return;
    size_t used = s->granted + s->held, more = used < s->window ? s->window - used : 0;
    if (more < s->window / 4)
        return;
    if (s->window < MUX_WINDOW_MAX) {
        more += s->window;
        s->window *= 2;
    }
    s->granted += more;
    put_window(s->mux->out, s->id, more);
}

void mux_end(struct mux_stream *s)
{
    if (s->sent_end)
        return;
    s->sent_end = true;
    mux_frame_put(s->mux->out, MUX_END, s->id, NULL, 0);
    if (s->got_end)
        over(s, (struct span){0});
}

/* ---- the whole ---- */

struct mux *mux_new(const struct mux_owner *owner, struct buf *out)
{
    struct mux *m = mem_zalloc(sizeof *m);
    m->owner = *owner;
    m->out = out;
    return m;
}

void mux_free(struct mux *m)
{
    static const char why[] = "the connection has ended";
    while (m->first)
        /* What is over is in the list no more. NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
        over(m->first, (struct span){why, sizeof why - 1});
    free(m);
}

size_t mux_count(const struct mux *m)
{
    return m->n;
}

struct mux_stream *mux_streams(const struct mux *m)
{
    return m->first;
}
