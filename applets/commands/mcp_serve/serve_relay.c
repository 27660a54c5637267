#include "serve_relay.h"

#include <stdlib.h>
#include <string.h>

#include "mem.h"
#include "relay_child.h"
#include "rpc.h"
#include "serve.h"
#include "serve_far.h"

#define EDITS_MAX 4
#define SUBSCRIPTION "io.modelcontextprotocol/subscriptionId"

/* A request that the child has not answered. */
struct asked {
    struct asked *next;
    unsigned number;    /* by which the child knows it, and its progress */
    char *id, *token;   /* as the client has them; token NULL: none */
    struct sse *stream; /* of whoever waits */
};

struct relay {
    struct relay_owner owner;
    bool many, ending;
    unsigned numbers;
    struct asked *asked; /* the newest first */
    struct relay_child child;
};

/* ---- to the child ---- */

static void forget(struct relay *r, struct asked *a)
{
    struct asked **at = &r->asked;
    while (*at != a)
        at = &(*at)->next;
    *at = a->next;
    free(a->id);
    free(a->token);
    free(a);
}

static void tell_cancelled(struct relay *r, const struct asked *a)
{
    struct buf text BUF_AUTO = BUF_INIT;
    buf_addf(&text,
             "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":%u}}",
             a->number);
    relay_child_send(&r->child, span_of(&text));
}

void relay_cancel(struct relay *r, struct sse *stream)
{
    for (struct asked *a = r->asked, *next; a; a = next) {
        next = a->next;
        if (a->stream != stream)
            continue;
        tell_cancelled(r, a);
        forget(r, a); /* it is not answered */
    }
    r->owner.said(stream, (struct span){0}, true);
}

/* ---- what clients say ---- */

/* Whether another request of that stream is open. */
static bool has_more(const struct relay *r, const struct sse *stream)
{
    for (const struct asked *a = r->asked; a; a = a->next)
        if (a->stream == stream)
            return true;
    return false;
}

static void take_cancelled(struct relay *r, struct span message, struct span params)
{
    struct span id;
    struct buf text BUF_AUTO = BUF_INIT;
    if (r->many || !json_member(params, "requestId", &id, NULL)) /* an id is nobody's there */
        return;
    for (struct asked *a = r->asked; a; a = a->next)
        if (span_is(id, a->id)) {
            char number[16];
            snprintf(number, sizeof number, "%u", a->number);
            struct edit edit = {id, number};
            far_put_edited(&text, message, &edit, 1);
            relay_child_send(&r->child, span_of(&text));
            struct sse *stream = a->stream;
            forget(r, a); /* it is not answered */
            r->owner.said(stream, (struct span){0}, !has_more(r, stream));
            return;
        }
}

/* Appends what the child is to get of one message, if anything. */
static void put_message(struct relay *r, struct sse *stream, struct span message, struct buf *out)
{
    struct span id, method, params, meta, token;
    struct edit edits[EDITS_MAX];
    size_t n = 0;
    bool has_method = far_inside(message, "method", JSON_STRING, &method);
    bool has_params = far_inside(message, "params", JSON_OBJECT, &params);
    if (json_kind(message) != JSON_OBJECT || !json_member(message, "id", &id, NULL)) {
        if (has_method && json_string_is(method, "notifications/cancelled")) {
            if (has_params)
                take_cancelled(r, message, params);
        } else {
            buf_add(out, message.s, message.n);
        }
        return;
    }
    if (!has_method) /* an answer: the child asks nobody */
        return;
    struct asked *a = mem_zalloc(sizeof *a);
    char number[16];
    a->number = ++r->numbers;
    a->id = mem_dup(id.s, id.n);
    a->stream = stream;
    a->next = r->asked;
    r->asked = a;
    snprintf(number, sizeof number, "%u", a->number);
    edits[n++] = (struct edit){id, number};
    if (has_params && far_inside(params, "_meta", JSON_OBJECT, &meta) &&
        json_member(meta, "progressToken", &token, NULL)) {
        a->token = mem_dup(token.s, token.n);
        edits[n++] = (struct edit){token, number};
    }
    far_put_edited(out, message, edits, n);
}

static void answer_error(struct relay *r, struct sse *stream, struct span id, const struct err *err)
{
    struct buf text BUF_AUTO = BUF_INIT;
    rpc_put_error(&text, id, err);
    r->owner.said(stream, span_of(&text), true);
}

/* What the child would have no one to answer for. */
static bool is_answerable(struct span message)
{
    struct span id;
    return json_kind(message) == JSON_OBJECT &&
           (!json_member(message, "id", &id, NULL) || json_kind(id) == JSON_STRING ||
            json_kind(id) == JSON_NUMBER);
}

void relay_message(struct relay *r, struct sse *stream, struct span text)
{
    struct buf out BUF_AUTO = BUF_INIT;
    struct err err;
    struct span one;
    bool many = json_check(text, &err) == 0 && json_kind(text) == JSON_ARRAY, fine = many;
    if (json_check(text, &err) == 0 && !many && !(fine = is_answerable(text)))
        err_set(&err, ERR_INVALID_REQUEST,
                "Invalid request: must be an object whose id is a text or a number");
    if (!fine) {
        answer_error(r, stream, (struct span){0}, &err);
        return;
    }
    if (!many) {
        put_message(r, stream, text, &out);
    } else {
        buf_addc(&out, '[');
        for (size_t at = 0; json_element(text, &at, &one);) {
            size_t before = out.len;
            if (before > 1)
                buf_addc(&out, ',');
            size_t begin = out.len;
            put_message(r, stream, one, &out);
            if (out.len == begin)
                buf_truncate(&out, before);
        }
        buf_addc(&out, ']');
    }
    if (out.len > (many ? 2 : 0)) /* of an empty array nothing is left to be said */
        relay_child_send(&r->child, span_of(&out));
}

bool relay_is_busy(const struct relay *r)
{
    return r->asked != NULL;
}

/* ---- what the child says ---- */

static struct asked *find(const struct relay *r, struct span number)
{
    char text[16] = "";
    if (number.n < sizeof text)
        memcpy(text, number.s, number.n);
    struct asked *a = r->asked;
    while (a && (json_kind(number) != JSON_NUMBER || a->number != strtoul(text, NULL, 10)))
        a = a->next;
    return a;
}

/* The answer with its own names. Whose it is, who is forgotten; NULL: nobody's. */
static struct sse *put_answer(struct relay *r, struct span message, struct buf *out)
{
    struct span id, result, meta, subscription;
    struct edit edits[EDITS_MAX];
    size_t n = 0;
    if (!json_member(message, "id", &id, NULL))
        return NULL;
    struct asked *a = find(r, id);
    if (!a)
        return NULL;
    struct sse *stream = a->stream;
    edits[n++] = (struct edit){id, a->id};
    if (far_inside(message, "result", JSON_OBJECT, &result) &&
        far_inside(result, "_meta", JSON_OBJECT, &meta) &&
        json_member(meta, SUBSCRIPTION, &subscription, NULL))
        edits[n++] = (struct edit){subscription, a->id};
    far_put_edited(out, message, edits, n);
    forget(r, a);
    return stream;
}

static void take_answers(struct relay *r, struct span array)
{
    struct buf out BUF_AUTO = BUF_INIT;
    struct sse *stream = NULL;
    struct span one;
    buf_addc(&out, '[');
    for (size_t at = 0; json_element(array, &at, &one);) {
        size_t before = out.len;
        if (before > 1)
            buf_addc(&out, ',');
        size_t begin = out.len;
        struct sse *whose = put_answer(r, one, &out);
        stream = whose ? whose : stream;
        if (out.len == begin)
            buf_add(&out, one.s, one.n); /* of one that had no id that could be read */
    }
    buf_addc(&out, ']');
    if (stream)
        r->owner.said(stream, span_of(&out), true);
}

/* Who is told what isn't said of a certain request: the only one, or the newest of a client. */
static struct sse *anybody(const struct relay *r)
{
    struct sse *stream = NULL;
    for (const struct asked *a = r->asked; a; a = a->next) {
        if (stream && r->many && a->stream != stream)
            return NULL;
        stream = stream ? stream : a->stream;
    }
    return stream;
}

static void take_notification(struct relay *r, struct span message)
{
    struct buf out BUF_AUTO = BUF_INIT;
    struct span params, meta, name = {0};
    struct sse *stream = anybody(r);
    struct asked *a = NULL;
    if (far_inside(message, "params", JSON_OBJECT, &params) &&
        (json_member(params, "progressToken", &name, NULL) ||
         (far_inside(params, "_meta", JSON_OBJECT, &meta) && json_member(meta, SUBSCRIPTION, &name, NULL)))) {
        a = find(r, name);
        stream = a ? a->stream : NULL;
    }
    struct edit edit = {name, a && a->token ? a->token : a ? a->id : NULL};
    far_put_edited(&out, message, &edit, a ? 1 : 0);
    if (stream)
        r->owner.said(stream, span_of(&out), false);
}

static void take_line(void *arg, struct span line)
{
    struct relay *r = arg;
    struct buf out BUF_AUTO = BUF_INIT;
    struct span member;
    if (json_check(line, NULL) < 0)
        return;
    if (json_kind(line) == JSON_ARRAY) {
        take_answers(r, line);
    } else if (json_kind(line) == JSON_OBJECT && json_member(line, "method", &member, NULL)) {
        if (!json_member(line, "id", &member, NULL))
            take_notification(r, line);
    } else if (json_kind(line) == JSON_OBJECT) {
        struct sse *stream = put_answer(r, line, &out);
        if (stream)
            r->owner.said(stream, span_of(&out), !has_more(r, stream));
    }
}

/* ---- its end ---- */

static void child_ended(void *arg)
{
    struct relay *r = arg;
    struct err err;
    relay_child_why(&r->child, &err);
    while (r->asked) {
        struct sse *stream = r->asked->stream;
        struct span id = {r->asked->id, strlen(r->asked->id)};
        struct buf text BUF_AUTO = BUF_INIT;
        rpc_put_error(&text, id, &err);
        forget(r, r->asked);
        if (stream)
            r->owner.said(stream, span_of(&text), !has_more(r, stream));
    }
    r->owner.over(r->owner.arg);
}

void relay_end(struct relay *r)
{
    if (r->ending)
        return;
    r->ending = true;
    for (struct asked *a = r->asked; a; a = a->next)
        tell_cancelled(r, a);
    while (r->asked)
        forget(r, r->asked);
    relay_child_leave(&r->child);
}

void relay_free(struct relay *r)
{
    if (!r)
        return;
    while (r->asked)
        forget(r, r->asked);
    relay_child_release(&r->child);
    free(r);
}

struct relay *relay_new(struct loop *loop, const struct serve_far *far, const char *target, bool many,
                        const struct relay_owner *owner, struct err *err)
{
    struct relay *r = mem_zalloc(sizeof *r);
    const struct relay_child_owner to = {take_line, child_ended, r};
    *r = (struct relay){.owner = *owner, .many = many};
    if (relay_child_start(&r->child, loop, far, target, &to, err) == 0)
        return r;
    relay_free(r);
    return NULL;
}
