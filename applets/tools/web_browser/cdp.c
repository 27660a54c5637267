#include "cdp.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fifo.h"
#include "io.h"
#include "log.h"
#include "mem.h"
#include "memory_share.h"

#define READ_STEP (256u << 10)
#define READS_A_TURN 16       /* then others get theirs */
#define KEPT_ROOM (1u << 20)  /* memory that is kept for the next message */
#define HEAD_MAX 256          /* of a message that is too long: enough to tell whose answer it is */
#define QUEUE_MAX (64u << 20) /* bytes that wait for a browser which doesn't read */

struct cdp_pending {
    struct cdp_pending *next;
    unsigned id;
    char *session;
    cdp_answer_fn done;
    void *arg;
};

struct cdp {
    struct loop *loop;
    int in, out;
    struct loop_source *reading, *writing, *later;
    struct buf message;
    struct memory_share share; /* of the message */
    bool too_long;             /* the rest of the message is thrown away */
    struct fifo queue;
    unsigned next_id;
    struct cdp_pending *first, **last;
    struct err closed; /* why; code 0: it is open */
    struct {
        const struct cdp_events *events;
        void *arg;
    } owner;
};

/* ---- open calls ---- */

static struct cdp_pending *take(struct cdp *cdp, struct cdp_pending **link)
{
    struct cdp_pending *p = *link;
    *link = p->next;
    if (!p->next)
        cdp->last = link;
    return p;
}

static void answer(struct cdp_pending *p, struct span result, const struct err *err)
{
    if (p->done)
        p->done(p->arg, result, err);
    free(p->session);
    free(p);
}

/* What an answer makes others call is not failed with them: only what is open now. */
void cdp_fail(struct cdp *cdp, const char *session, const struct err *err)
{
    struct cdp_pending *failed = NULL, **end = &failed;
    for (struct cdp_pending **link = &cdp->first; *link;) {
        if (session && strcmp((*link)->session, session) != 0) {
            link = &(*link)->next;
            continue;
        }
        struct cdp_pending *p = take(cdp, link);
        p->next = NULL;
        *end = p;
        end = &p->next;
    }
    while (failed) {
        struct cdp_pending *p = failed;
        failed = p->next;
        answer(p, (struct span){0}, err);
    }
}

void cdp_forget(struct cdp *cdp, const void *arg)
{
    for (struct cdp_pending *p = cdp->first; p; p = p->next)
        if (p->arg == arg)
            p->done = NULL;
}

static void answer_by_id(struct cdp *cdp, unsigned id, struct span result, const struct err *err)
{
    for (struct cdp_pending **link = &cdp->first; *link; link = &(*link)->next)
        if ((*link)->id == id) {
            answer(take(cdp, link), result, err);
            return;
        }
}

/* ---- the end ---- */

static void close_pipes(struct cdp *cdp)
{
    loop_drop(&cdp->reading);
    loop_drop(&cdp->writing);
    io_close(&cdp->in);
    io_close(&cdp->out);
    fifo_release(&cdp->queue);
    buf_release(&cdp->message);
}

void cdp_close(struct cdp *cdp, const struct err *why)
{
    if (cdp->closed.code != 0)
        return;
    cdp->closed = *why;
    close_pipes(cdp);
    cdp_fail(cdp, NULL, &cdp->closed);
}

static void hang_up(struct cdp *cdp)
{
    struct err why;
    if (cdp->closed.code != 0)
        return;
    err_set(&why, ERR_TOOL, "the browser has ended");
    cdp->owner.events->hung_up(cdp->owner.arg);
    cdp_close(cdp, &why);
}

/* ---- messages in ---- */

enum { ID, SESSION, METHOD, PARAMS, RESULT, FAILURE, N_MEMBERS };

static void read_error(struct span error, struct err *err)
{
    struct span message, data;
    struct buf text BUF_AUTO = BUF_INIT;
    if (json_kind(error) == JSON_OBJECT && json_member(error, "message", &message, NULL))
        json_string_text(message, &text);
    if (json_kind(error) == JSON_OBJECT && json_member(error, "data", &data, NULL) &&
        json_kind(data) == JSON_STRING) {
        buf_adds(&text, ": ");
        json_string_text(data, &text);
    }
    err_set(err, ERR_TOOL, "%s", buf_str(&text));
}

static void give_event(struct cdp *cdp, const struct span *members)
{
    static const struct span none = {"{}", 2};
    struct buf session BUF_AUTO = BUF_INIT;
    struct buf method BUF_AUTO = BUF_INIT;
    if (members[SESSION].s)
        json_string_text(members[SESSION], &session);
    if (json_string_text(members[METHOD], &method))
        cdp->owner.events->event(cdp->owner.arg, buf_str(&session), buf_str(&method),
                                 members[PARAMS].s ? members[PARAMS] : none);
}

static void take_message(struct cdp *cdp, struct span message)
{
    static const char *const keys[] = {"id", "sessionId", "method", "params", "result", "error"};
    struct span members[N_MEMBERS];
    int counts[N_MEMBERS];
    struct err err;
    if (json_check(message, &err) < 0 || json_kind(message) != JSON_OBJECT) {
        log_line(LOG_WARNING, "the browser sent what is no message");
        return;
    }
    json_members(message, keys, N_MEMBERS, members, counts);
    if (!members[ID].s) {
        if (members[METHOD].s)
            give_event(cdp, members);
        return;
    }
    unsigned id = (unsigned)strtoul(members[ID].s, NULL, 10);
    if (members[FAILURE].s) {
        members[RESULT] = (struct span){0};
        read_error(members[FAILURE], &err);
    } else if (!members[RESULT].s) {
        err_set(&err, ERR_TOOL, "the browser gave no result");
    }
    answer_by_id(cdp, id, members[RESULT], members[RESULT].s ? NULL : &err);
}

/* Only its head is known. The id stands in front in an answer of Chromium's. */
static void take_too_long(struct cdp *cdp)
{
    static const char id[] = "{\"id\":";
    struct err err;
    err_set(&err, ERR_TOOL, "the browser's answer is longer than %zu MiB", cdp->message.len >> 20);
    log_line(LOG_WARNING, "a message of the browser is too long");
    if (strncmp(buf_str(&cdp->message), id, sizeof id - 1) == 0)
        answer_by_id(cdp, (unsigned)strtoul(cdp->message.data + sizeof id - 1, NULL, 10), (struct span){0},
                     &err);
}

/* The bytes from `fresh` on are new: a message ends at each NUL. The buffer is taken out while its messages
 * are dealt with: whoever gets them may close all this. */
static void split(struct cdp *cdp, size_t fresh)
{
    size_t begin = 0;
    struct buf held = cdp->message;
    buf_init(&cdp->message, BUF_NO_MAX);
    for (char *end; held.len > fresh && (end = memchr(held.data + fresh, '\0', held.len - fresh));) {
        size_t at = (size_t)(end - held.data);
        if (cdp->closed.code == 0 && !cdp->too_long)
            take_message(cdp, (struct span){held.data + begin, at - begin});
        cdp->too_long = false;
        begin = fresh = at + 1;
    }
    if (begin == held.len && held.cap > KEPT_ROOM)
        buf_release(&held);
    else
        buf_consume(&held, begin);
    if (cdp->closed.code != 0)
        buf_release(&held);
    else
        cdp->message = held;
}

/* Of a message that is too long the head stays, until its end has come. */
static void bound(struct cdp *cdp)
{
    if (!cdp->too_long &&
        cdp->message.len > memory_share(&cdp->share, cdp->message.len, (size_t)CDP_MESSAGE_MAX)) {
        cdp->too_long = true;
        take_too_long(cdp);
    }
    if (cdp->too_long && cdp->message.len > HEAD_MAX) {
        buf_truncate(&cdp->message, HEAD_MAX);
        buf_shrink(&cdp->message);
    }
}

static void on_readable(void *arg, int events)
{
    struct cdp *cdp = arg;
    (void)events;
    for (int i = 0; i < READS_A_TURN && cdp->closed.code == 0; i++) {
        size_t had = cdp->message.len;
        buf_reserve(&cdp->message, READ_STEP);
        ssize_t n = read(cdp->in, cdp->message.data + had, READ_STEP);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n <= 0) {
            hang_up(cdp);
            return;
        }
        cdp->message.len += (size_t)n;
        split(cdp, had);
        bound(cdp);
    }
}

/* ---- messages out ---- */

static void on_writable(void *arg, int events)
{
    struct cdp *cdp = arg;
    (void)events;
    while (cdp->queue.len > 0) {
        ssize_t n = fifo_write(&cdp->queue, cdp->out);
        if (n < 0 && errno == EAGAIN) {
            if (!cdp->writing)
                cdp->writing = loop_fd(cdp->loop, cdp->out, LOOP_WRITE, on_writable, cdp);
            return;
        }
        if (n < 0 && errno != EINTR) { /* its end is seen where we read, behind what it last said */
            fifo_release(&cdp->queue);
            break;
        }
    }
    loop_drop(&cdp->writing);
}

static void put_message(struct buf *out, unsigned id, const char *session, const char *method,
                        struct span params)
{
    buf_addf(out, "{\"id\":%u,\"method\":\"%s\"", id, method);
    if (params.s) {
        json_key(out, "params");
        buf_add(out, params.s, params.n);
    }
    if (*session)
        json_member_string(out, "sessionId", session);
    buf_add(out, "}", 2); /* with its NUL */
}

/* Nobody is answered before cdp_call has returned. */
static void fail_later(void *arg)
{
    struct cdp *cdp = arg;
    loop_drop(&cdp->later);
    cdp_fail(cdp, NULL, &cdp->closed);
}

void cdp_call(struct cdp *cdp, const char *session, const char *method, struct span params,
              cdp_answer_fn done, void *arg)
{
    struct buf text BUF_AUTO = BUF_INIT;
    struct cdp_pending *p = mem_alloc(sizeof *p);
    *p = (struct cdp_pending){.id = ++cdp->next_id, .session = mem_strdup(session), .done = done, .arg = arg};
    *cdp->last = p;
    cdp->last = &p->next;
    put_message(&text, p->id, session, method, params);
    if (cdp->closed.code == 0 && cdp->queue.len + text.len > QUEUE_MAX) {
        struct err why;
        err_set(&why, ERR_TOOL, "the browser reads nothing any more");
        cdp->closed = why;
        close_pipes(cdp);
    }
    if (cdp->closed.code != 0) {
        if (!cdp->later)
            cdp->later = loop_timer(cdp->loop, 1, fail_later, cdp);
        return;
    }
    fifo_add(&cdp->queue, text.data, text.len);
    on_writable(cdp, LOOP_WRITE);
}

struct cdp *cdp_new(struct loop *loop, int read_fd, int write_fd, const struct cdp_events *events, void *arg)
{
    struct cdp *cdp = mem_zalloc(sizeof *cdp);
    *cdp =
        (struct cdp){.loop = loop, .in = read_fd, .out = write_fd, .owner.events = events, .owner.arg = arg};
    cdp->last = &cdp->first;
    buf_init(&cdp->message, BUF_NO_MAX);
    cdp->reading = loop_fd(loop, cdp->in, LOOP_READ, on_readable, cdp);
    return cdp;
}
