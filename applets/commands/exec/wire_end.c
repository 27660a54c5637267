#include "wire_end.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dial.h"
#include "io.h"
#include "mem.h"
#include "wire.h"

#define WAITING_MAX 256 /* who have come and were not taken: more wait in the queue of the socket */

/* ---- connections ---- */

struct wire_end {
    const struct end_kind *kind;
    struct mux_stream *stream; /* NULL: it closed while it was being connected */
    struct wire *wire;         /* NULL: not connected yet */
    struct buf early;          /* what came before that */
    bool early_end;
};

static struct wire_owner owner;

static struct wire_end *wire_end_new(const struct end_kind *kind, struct mux_stream *s)
{
    struct wire_end *e = mem_zalloc(sizeof *e);
    *e = (struct wire_end){.kind = kind, .stream = s, .early = BUF_INIT};
    owner = (struct wire_owner){ends.loop, ends_room, ends.said};
    s->work = e;
    return e;
}

static void on_connected(void *arg, int fd, const struct err *why)
{
    struct wire_end *e = arg;
    struct mux_stream *s = e->stream;
    if (!s || fd < 0) {
        io_close(&fd);
        buf_release(&e->early);
        free(e);
        if (s)
            mux_reset(s, why->msg);
        ends.said();
        return;
    }
    e->wire = wire_new(&owner, s, fd);
    struct buf early BUF_AUTO = e->early;
    e->early = (struct buf)BUF_INIT;
    bool end = e->early_end;
    if ((early.len == 0 || wire_received(e->wire, span_of(&early))) && end)
        wire_ended(e->wire);
    ends.said();
}

static int text_of(struct span params, struct buf *text, struct err *err)
{
    return json_string_text(params, text) && text->len > 0 && !memchr(text->data, '\0', text->len)
               ? 0
               : err_set(err, ERR_PARAMS, "a port, HOST:PORT or an absolute path is wanted");
}

static int begin_connect(struct mux_stream *s, struct span params, struct err *err)
{
    struct buf where BUF_AUTO = BUF_INIT;
    if (text_of(params, &where, err) < 0)
        return -1;
    dial(ends.loop, where.data, on_connected, wire_end_new(&connect_end, s));
    return 0;
}

static void received(struct mux_stream *s, struct span data)
{
    struct wire_end *e = s->work;
    if (e->wire)
        wire_received(e->wire, data);
    else
        buf_add(&e->early, data.s, data.n);
}

static void ended(struct mux_stream *s)
{
    struct wire_end *e = s->work;
    e->early_end = true;
    if (e->wire)
        wire_ended(e->wire);
}

static void wait_for_room(struct mux_stream *s)
{
    struct wire_end *e = s->work;
    if (e->wire)
        wire_wait(e->wire);
}

static void closed(struct mux_stream *s)
{
    struct wire_end *e = s->work;
    e->stream = NULL;
    if (!e->wire)
        return; /* on_connected ends it */
    wire_free(e->wire, s->sent_end && s->got_end);
    free(e);
}

/* ---- those who listen ---- */

struct listening {
    const struct end_kind *kind;
    struct mux_stream *stream;
    char *path; /* that was made; NULL: none */
    int fd;
    struct loop_source *source;
};

/* Who have come, by their number; shared by all that listen. */
static MEM_LARGE struct {
    int fds[WAITING_MAX]; /* 0: none */
    struct mux_stream *of[WAITING_MAX];
    uint32_t numbers;
} waiting;

static void say_number(struct mux_stream *s, uint32_t number)
{
    char bytes[4];
    mux_put_number(bytes, number);
    mux_send(s, bytes, sizeof bytes);
}

static void on_come(void *arg, int events)
{
    struct listening *l = arg;
    (void)events;
    uint32_t number = waiting.numbers + 1;
    int *slot = &waiting.fds[number % WAITING_MAX];
    if (*slot || l->stream->room < 4) {
        loop_drop(&l->source); /* until some are taken */
        return;
    }
    int fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return;
    waiting.numbers = number;
    *slot = fd;
    waiting.of[number % WAITING_MAX] = l->stream;
    say_number(l->stream, number);
    ends.said();
}

static void listen_wait(struct mux_stream *s)
{
    struct listening *l = s->work;
    if (!l->source)
        l->source = loop_fd(ends.loop, l->fd, LOOP_READ, on_come, l);
}

static int begin_listen(struct mux_stream *s, struct span params, struct err *err)
{
    struct buf where BUF_AUTO = BUF_INIT;
    if (text_of(params, &where, err) < 0)
        return -1;
    int fd = dial_listen(where.data, err);
    if (fd < 0)
        return -1;
    struct listening *l = mem_zalloc(sizeof *l);
    *l = (struct listening){.kind = &listen_end,
                            .stream = s,
                            .path = where.data[0] == '/' ? mem_strdup(where.data) : NULL,
                            .fd = fd};
    s->work = l;
    say_number(s, 0);
    listen_wait(s);
    return 0;
}

static void listen_received(struct mux_stream *s, struct span data)
{
    mux_consumed(s, data.n);
}

static void listen_closed(struct mux_stream *s)
{
    struct listening *l = s->work;
    for (size_t i = 0; i < WAITING_MAX; i++)
        if (waiting.fds[i] && waiting.of[i] == s) {
            close(waiting.fds[i]);
            waiting.fds[i] = 0;
        }
    loop_drop(&l->source);
    close(l->fd);
    if (l->path)
        unlink(l->path);
    free(l->path);
    free(l);
}

static void listen_ended(struct mux_stream *s)
{
    mux_end(s); /* closes it */
}

static int begin_accept(struct mux_stream *s, struct span params, struct err *err)
{
    unsigned long number = strtoul(params.s, NULL, 10);
    int *slot = &waiting.fds[number % WAITING_MAX];
    if (!*slot)
        return err_set(err, ERR_TOOL, "nobody of that number waits");
    struct wire_end *e = wire_end_new(&accept_end, s);
    e->wire = wire_new(&owner, s, *slot);
    *slot = 0;
    listen_wait(waiting.of[number % WAITING_MAX]);
    return 0;
}

const struct end_kind connect_end = {.name = "connect",
                                     .begin = begin_connect,
                                     .received = received,
                                     .ended = ended,
                                     .wait = wait_for_room,
                                     .closed = closed};
const struct end_kind accept_end = {.name = "accept",
                                    .begin = begin_accept,
                                    .received = received,
                                    .ended = ended,
                                    .wait = wait_for_room,
                                    .closed = closed};
const struct end_kind listen_end = {.name = "listen",
                                    .begin = begin_listen,
                                    .received = listen_received,
                                    .ended = listen_ended,
                                    .wait = listen_wait,
                                    .closed = listen_closed};
