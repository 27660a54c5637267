#include "x11.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io.h"

#define READ_STEP 65536
#define REPLY_MAX (256u << 20)
#define EVENTS_MAX 4096 /* that are kept: the oldest of more are dropped */
#define GET_INPUT_FOCUS 43
#define LOOK_ROUNDS 64 /* others have their turn where it doesn't end */
#define LATE_MS 10

enum { KIND_ERROR = 0, KIND_REPLY = 1, KIND_GENERIC_EVENT = 35 };

/* ---- out ---- */

static void put_words(struct buf *out, const uint32_t *words, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        unsigned char b[4] = {(unsigned char)words[i], (unsigned char)(words[i] >> 8),
                              (unsigned char)(words[i] >> 16), (unsigned char)(words[i] >> 24)};
        buf_add(out, b, sizeof b);
    }
}

void x11_send(struct x11 *x, const struct x11_request *r)
{
    size_t padding = -r->n_data & 3;
    size_t length = 1 + r->n_words + (r->n_data + padding) / 4;
    uint32_t head = r->opcode | (uint32_t)r->detail << 8 | (uint32_t)length << 16;
    put_words(&x->out, &head, 1);
    put_words(&x->out, r->words, r->n_words);
    buf_add(&x->out, r->data, r->n_data);
    buf_add(&x->out, "\0\0\0", padding);
    x->sequence++;
}

/* ---- in and out ---- */

static int end_with(struct x11 *x, struct err *err, const char *why)
{
    if (!x->dead)
        err_set(&x->end, ERR_TOOL, "the display %s %s", x->display, why);
    x->dead = true;
    *err = x->end;
    return -1;
}

static int take_in(struct x11 *x, struct err *err)
{
    if (buf_reserve(&x->in, READ_STEP) < 0)
        return end_with(x, err, "sends too much");
    ssize_t n = read(x->fd, x->in.data + x->in.len, READ_STEP);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n <= 0)
        return end_with(x, err, "has closed the connection: its X server has ended, or has ended us");
    x->in.len += (size_t)n;
    return 0;
}

static int give_out(struct x11 *x, struct err *err)
{
    ssize_t n = write(x->fd, x->out.data, x->out.len);
    if (n < 0 && errno != EAGAIN && errno != EINTR)
        return end_with(x, err, "has closed the connection: its X server has ended, or has ended us");
    if (n > 0)
        buf_consume(&x->out, (size_t)n);
    return 0;
}

/* Waits until something can be read, which then is, and writes meanwhile. 0: nothing has come in time. */
static int pump(struct x11 *x, long long until_ms, struct err *err)
{
    for (;;) {
        struct pollfd p = {.fd = x->fd, .events = (short)(POLLIN | (x->out.len > 0 ? POLLOUT : 0))};
        long long left = until_ms - now_ms();
        int n = poll(&p, 1, left > 0 ? (int)left : 0);
        if (n < 0 && errno != EINTR)
            return end_with(x, err, "can't be waited for");
        if (n > 0 && p.revents & POLLOUT && give_out(x, err) < 0)
            return -1;
        if (n > 0 && p.revents & (POLLIN | POLLHUP | POLLERR))
            return take_in(x, err) < 0 ? -1 : 1;
        if (left <= 0)
            return 0;
    }
}

/* ---- what has come ---- */

static void keep_event(struct x11 *x, const char *event)
{
    if (x->events.len >= (size_t)EVENTS_MAX * X11_EVENT_SIZE)
        buf_consume(&x->events, X11_EVENT_SIZE);
    buf_add(&x->events, event, X11_EVENT_SIZE);
}

static int say_error(const struct x11 *x, const char *packet, struct err *err)
{
    static const char *const names[] = {"",          "BadRequest",  "BadValue",  "BadWindow",
                                        "BadPixmap", "BadAtom",     "BadCursor", "BadFont",
                                        "BadMatch",  "BadDrawable", "BadAccess", "BadAlloc"};
    unsigned code = (unsigned char)packet[1];
    return err_set(err, ERR_TOOL, "the display %s refuses a request (%u.%u) with error %u %s", x->display,
                   (unsigned char)packet[10], x11_u16(packet + 8), code,
                   code < sizeof names / sizeof *names ? names[code] : "");
}

/* The bytes that the first packet takes; 0: it isn't all there. */
static size_t packet_size(const struct x11 *x)
{
    if (x->in.len < 32)
        return 0;
    unsigned kind = x->in.data[0] & 0x7f;
    uint32_t more = kind == KIND_REPLY || kind == KIND_GENERIC_EVENT ? x11_u32(x->in.data + 4) : 0;
    return more > REPLY_MAX / 4 ? REPLY_MAX : 32 + (size_t)more * 4;
}

/* Takes the packets that are there, up to the answer to the request `wanted`. 1: it is in *reply; 0: not yet.
 */
static int take_packets(struct x11 *x, const uint16_t *wanted, struct buf *reply, struct err *err)
{
    size_t at = 0;
    int found = 0;
    while (found == 0) {
        struct x11 rest = {.in = {.data = x->in.data + at, .len = x->in.len - at}};
        const char *packet = rest.in.data;
        size_t n = packet_size(&rest);
        if (n >= REPLY_MAX)
            return end_with(x, err, "sends what can't be an answer");
        if (n == 0 || n > rest.in.len)
            break;
        unsigned kind = packet[0] & 0x7f;
        bool ours = wanted && x11_u16(packet + 2) == *wanted;
        if (kind > KIND_REPLY && kind != KIND_GENERIC_EVENT)
            keep_event(x, packet);
        else if (kind == KIND_ERROR && ours)
            found = say_error(x, packet, err);
        else if (kind == KIND_REPLY && ours) {
            buf_add(reply, packet, n);
            found = 1;
        }
        at += n;
    }
    if (at > 0)
        buf_consume(&x->in, at);
    if (x->in.len == 0)
        buf_shrink(&x->in);
    return found;
}

int x11_ask(struct x11 *x, const struct x11_request *request, size_t least, struct buf *reply,
            struct err *err)
{
    if (x->dead)
        return end_with(x, err, "");
    buf_truncate(reply, 0);
    x11_send(x, request);
    uint16_t wanted = x->sequence;
    long long until = now_ms() + X11_PATIENCE_MS;
    for (;;) {
        int found = take_packets(x, &wanted, reply, err);
        if (found > 0 && reply->len < 32 + least)
            return end_with(x, err, "sends an answer that is too short");
        if (found != 0)
            return found < 0 ? -1 : 0;
        int came = now_ms() > until ? 0 : pump(x, until, err); /* events without an end are no answer */
        if (came == 0)
            return end_with(x, err, "does not answer");
        if (came < 0)
            return -1;
    }
}

int x11_sync(struct x11 *x, struct err *err)
{
    struct buf reply BUF_AUTO = BUF_INIT;
    const struct x11_request r = {.opcode = GET_INPUT_FOCUS};
    return x11_ask(x, &r, 0, &reply, err);
}

int x11_look(struct x11 *x, struct err *err)
{
    if (x->dead)
        return end_with(x, err, "");
    int came = 1;
    for (int rounds = 0; came > 0 && rounds < LOOK_ROUNDS; rounds++)
        if ((came = pump(x, 0, err)) > 0 && take_packets(x, NULL, NULL, err) < 0)
            return -1;
    return came;
}

bool x11_event(struct x11 *x, int type, int ms, unsigned char event[X11_EVENT_SIZE])
{
    struct err err;
    long long until = now_ms() + ms;
    for (;;) {
        for (size_t at = 0; at < x->events.len; at += X11_EVENT_SIZE)
            if (type == 0 || (x->events.data[at] & 0x7f) == type) {
                memcpy(event, x->events.data + at, X11_EVENT_SIZE);
                buf_replace(&x->events, at, X11_EVENT_SIZE, "", 0);
                return true;
            }
        if (x->dead || now_ms() > until + LATE_MS || pump(x, until, &err) <= 0 ||
            take_packets(x, NULL, NULL, &err) < 0)
            return false;
    }
}

uint32_t x11_new_id(struct x11 *x)
{
    uint32_t step = x->id_mask & -x->id_mask;
    x->id_next = (x->id_next + step) & x->id_mask;
    return x->id_base | x->id_next;
}

void x11_close(struct x11 *x)
{
    io_close(&x->fd);
    free(x->display);
    buf_release(&x->out);
    buf_release(&x->in);
    buf_release(&x->events);
    x->display = NULL;
    x->dead = true;
}
