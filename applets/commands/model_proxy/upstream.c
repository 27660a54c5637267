#include "upstream.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "io.h"
#include "mem.h"

#define STREAM_HEAD_MS 2500 /* as of the other answers (proxy_calls.c) */
#define WHOLE_HEAD_MS 45000
#define PING_MS 5000
#define UNSENT_MOST (256u << 10) /* of a client that reads slowly */

/* The process that asks. */
struct asker {
    pid_t pid; /* 0: it has ended */
    int pipe;
    struct loop_source *source, *child;
    struct buf frames;
};

struct exchange {
    const struct upstream *upstream;
    struct loop *loop;
    struct proxy_conn *conn;
    enum dialect dialect;
    bool stream, begun, live; /* one was asked for; the client has a head; a stream's pieces come */
    int status;
    struct asker asker;
    struct loop_source *ping;
    struct slot slot;
    struct buf request, fields, body;
};

/* ---- the end ---- */

static void end(struct exchange *x)
{
    proxy_on_gone(x->conn, NULL, NULL);
    proxy_on_sent(x->conn, NULL, NULL);
    loop_drop(&x->asker.source);
    loop_drop(&x->ping);
    loop_drop(&x->asker.child);
    if (x->asker.pid > 0)
        kill(x->asker.pid, SIGKILL);
    io_close(&x->asker.pipe);
    slot_leave(&x->slot);
    buf_release(&x->request);
    buf_release(&x->asker.frames);
    buf_release(&x->fields);
    buf_release(&x->body);
    free(x);
}

static void on_gone(void *arg)
{
    end(arg);
}

static void on_child(void *arg, pid_t pid, int status)
{
    struct exchange *x = arg;
    (void)pid;
    (void)status;
    x->asker.pid = 0;
    x->asker.child = NULL;
}

/* The last that is said, after which there is nothing of it. */
static void finish(struct exchange *x, struct span text)
{
    struct events plan;
    events_init(&plan);
    buf_add(&plan.text, text.s, text.n);
    struct proxy_conn *conn = x->conn;
    end(x);
    proxy_stream_end(conn, &plan);
}

/* What is an error, of a stream that has begun. */
static void finish_with_error(struct exchange *x, struct span said)
{
    struct buf text BUF_AUTO = BUF_INIT;
    struct buf event BUF_AUTO = BUF_INIT;
    if (json_check(said, NULL) == 0 && json_kind(said) == JSON_OBJECT)
        json_compact(&text, said);
    else
        dialect_error(&text, x->dialect, x->status, said, (struct span){0});
    if (x->stream)
        buf_adds(&event, x->dialect == ANTHROPIC ? "event: error\ndata: " : "data: ");
    buf_add(&event, text.data, text.len);
    buf_adds(&event, x->stream ? "\n\n" : "");
    finish(x, span_of(&event));
}

static void fail(struct exchange *x, const char *why)
{
    struct buf message BUF_AUTO = BUF_INIT;
    buf_addf(&message, "%s can't be asked: %s", x->upstream->url.authority, why);
    x->status = 502;
    if (x->begun) {
        finish_with_error(x, span_of(&message));
        return;
    }
    struct proxy_conn *conn = x->conn;
    enum dialect dialect = x->dialect;
    end(x);
    proxy_refuse(conn, dialect, 502, buf_str(&message));
}

/* ---- the answer ---- */

static void begin(struct exchange *x)
{
    if (!x->begun)
        proxy_stream(x->conn, x->fields.len > 0 ? buf_str(&x->fields)
                              : x->stream       ? STREAM_FIELDS
                                                : JSON_FIELDS);
    x->begun = true;
}

static void on_ping(void *arg)
{
    struct exchange *x = arg;
    static const char *const pings[] = {": waiting\n\n", "event: ping\ndata: {\"type\":\"ping\"}\n\n", "\n",
                                        "\n"};
    const char *text = x->stream ? pings[x->dialect] : " ";
    begin(x);
    loop_timer_set(x->ping, PING_MS);
    proxy_stream_alive(x->conn, (struct span){text, strlen(text)});
}

/* STATUS and lines of fields. */
static void take_head(struct exchange *x, struct span head)
{
    static const char *const streams[] = {"text/event-stream", "application/x-ndjson"};
    char *text MEM_AUTO = mem_dup(head.s, head.n), *fields = strchr(text, '\n');
    x->status = (int)strtol(text, NULL, 10);
    buf_adds(&x->fields, fields ? fields + 1 : "");
    for (size_t i = 0; i < sizeof streams / sizeof *streams; i++)
        x->live = x->live || (x->status / 100 == 2 && strcasestr(buf_str(&x->fields), streams[i]));
    if (!x->live)
        return;
    loop_drop(&x->ping);
    begin(x);
}

static void take_end(struct exchange *x)
{
    if (x->live) {
        finish(x, (struct span){"", 0});
    } else if (x->begun && x->status / 100 == 2) {
        finish(x, span_of(&x->body));
    } else if (x->begun) {
        finish_with_error(x, span_of(&x->body));
    } else {
        struct buf fields BUF_AUTO = x->fields, body BUF_AUTO = x->body;
        struct proxy_conn *conn = x->conn;
        int status = x->status;
        x->fields = x->body = (struct buf)BUF_INIT;
        end(x);
        proxy_answer(conn, status, buf_str(&fields), span_of(&body));
    }
}

/* False: x is gone. */
static bool take_frame(struct exchange *x, char letter, struct span data)
{
    if (letter == UPSTREAM_HEAD) {
        take_head(x, data);
    } else if (letter == UPSTREAM_BODY && x->live) {
        proxy_stream_text(x->conn, data);
    } else if (letter == UPSTREAM_BODY) {
        buf_add(&x->body, data.s, data.n);
    } else if (letter == UPSTREAM_END) {
        take_end(x);
        return false;
    } else {
        char *why MEM_AUTO = mem_dup(data.s, data.n);
        fail(x, why);
        return false;
    }
    return true;
}

static bool take_frames(struct exchange *x)
{
    size_t at = 0;
    uint32_t n;
    while (x->asker.frames.len - at >= UPSTREAM_PREFIX) {
        const char *frame = x->asker.frames.data + at;
        memcpy(&n, frame + 1, sizeof n);
        if (x->asker.frames.len - at - UPSTREAM_PREFIX < n)
            break;
        if (!take_frame(x, *frame, (struct span){frame + UPSTREAM_PREFIX, n}))
            return false;
        at += UPSTREAM_PREFIX + n;
    }
    buf_consume(&x->asker.frames, at);
    return true;
}

static void on_sent(void *arg)
{
    struct exchange *x = arg;
    loop_fd_events(x->asker.source, LOOP_READ);
}

static void on_readable(void *arg, int events)
{
    struct exchange *x = arg;
    (void)events;
    ssize_t n = io_read_more(x->asker.pipe, &x->asker.frames);
    if (n < 0 && errno == EAGAIN)
        return;
    if (n > 0 && take_frames(x) && proxy_unsent(x->conn) > UNSENT_MOST)
        loop_fd_events(x->asker.source, 0); /* until the client has read what there is */
    else if (n <= 0)
        fail(x, "what asks it was ended");
}

/* ---- the request ---- */

static void start(void *arg)
{
    struct exchange *x = arg;
    int pipes[1][2];
    if (io_pipes(pipes, 1) < 0) {
        fail(x, err_text(errno));
        return;
    }
    x->asker.pid = loop_fork(x->loop);
    if (x->asker.pid == 0) {
        io_close_others(&pipes[0][1], 1);
        upstream_ask(&x->upstream->url, span_of(&x->request), pipes[0][1]);
    }
    io_close(&pipes[0][1]);
    x->asker.pipe = pipes[0][0];
    buf_release(&x->request);
    if (x->asker.pid < 0) {
        fail(x, err_text(errno));
        return;
    }
    io_set_nonblock(x->asker.pipe, true);
    x->asker.source = loop_fd(x->loop, x->asker.pipe, LOOP_READ, on_readable, x);
    x->asker.child = loop_child(x->loop, x->asker.pid, on_child, x);
    proxy_on_sent(x->conn, on_sent, x);
}

/* Fields that are between us and the client, or say who he is. */
static bool is_kept(const char *name)
{
    static const char *const ours[] = {"host",
                                       "connection",
                                       "content-length",
                                       "content-encoding",
                                       "accept-encoding",
                                       "expect",
                                       "cookie",
                                       "transfer-encoding",
                                       "origin",
                                       "referer",
                                       "te",
                                       "trailer",
                                       "upgrade",
                                       "keep-alive",
                                       "authorization",
                                       "x-api-key",
                                       "x-goog-api-key",
                                       "api-key",
                                       "proxy-authorization",
                                       "proxy-connection"};
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (strcmp(name, ours[i]) == 0)
            return true;
    return false;
}

static void put_key(struct buf *out, enum dialect dialect, const char *key)
{
    static const char *const fields[] = {"authorization: Bearer",
                                         "x-api-key:", "x-goog-api-key:", "authorization: Bearer"};
    if (key)
        buf_addf(out, "%s %s\r\n", fields[dialect], key);
}

/* The version that the client has named last, or that the dialect has. */
static void put_path(struct buf *out, const struct upstream *u, const struct proxy_asked *a)
{
    static const char reserved[] = "?#%";
    const char *end = a->what, *version = end;
    while (version > a->path && (version == end || *version != '/'))
        version--;
    size_t n = strcspn(u->url.path, "?");
    while (n > 0 && u->url.path[n - 1] == '/')
        n--;
    buf_addf(out, "%.*s", (int)n, u->url.path);
    if (!u->versioned && version < end)
        buf_addf(out, "%.*s", (int)(end - version), version);
    else if (!u->versioned && strncmp(a->what, "/api/", 5) != 0) /* Ollama's has none */
        buf_adds(out, a->dialect == GOOGLE ? "/v1beta" : "/v1");
    for (const char *s = a->what; *s; s++)
        if (*s <= ' ' || *s >= 127 || strchr(reserved, *s))
            buf_addf(out, "%%%02X", (unsigned char)*s);
        else
            buf_addc(out, *s);
}

/* The client's own key is none of ours. */
static void put_query(struct buf *out, const char *query)
{
    char mark = '?';
    for (size_t n; *query; query += n + (query[n] == '&')) {
        n = strcspn(query, "&");
        if (n == 0 || strncmp(query, "key=", 4) == 0)
            continue;
        buf_addf(out, "%c%.*s", mark, (int)n, query);
        mark = '&';
    }
}

static void put_request(struct exchange *x, const struct proxy_asked *a, const struct proxy_request *r)
{
    struct buf *out = &x->request;
    bool head = strcmp(r->method, "HEAD") == 0;
    buf_addf(out, "%s ", head ? "GET" : r->method);
    put_path(out, x->upstream, a);
    put_query(out, r->query);
    buf_addf(out, " HTTP/1.1\r\nhost: %s\r\nconnection: close\r\naccept-encoding: identity\r\n",
             x->upstream->url.authority);
    put_key(out, a->dialect, x->upstream->key);
    for (const char *name = NULL, *value; http_next_field(r->head, &name, &value);)
        if (!is_kept(name))
            buf_addf(out, "%s: %s\r\n", name, value);
    if (a->dialect == ANTHROPIC && !*http_field(r->head, "anthropic-version"))
        buf_adds(out, "anthropic-version: 2023-06-01\r\n");
    if (a->posts || r->body.n > 0)
        buf_addf(out, "content-length: %zu\r\n", r->body.n);
    buf_adds(out, "\r\n");
    buf_add(out, r->body.s, r->body.n);
}

static bool asks_for_stream(const struct proxy_asked *a, const char *query, struct span body)
{
    struct span value;
    if (strstr(a->what, ":streamGenerateContent"))
        return strstr(query, "alt=sse") != NULL;
    return json_check(body, NULL) == 0 && json_kind(body) == JSON_OBJECT &&
           json_member(body, "stream", &value, NULL) && span_is(value, "true");
}

void upstream_pass(const struct upstream *upstream, struct loop *loop, struct slots *slots,
                   const struct proxy_asked *a, const struct proxy_request *r)
{
    struct exchange *x = mem_zalloc(sizeof *x);
    *x = (struct exchange){
        .upstream = upstream, .loop = loop, .conn = a->conn, .dialect = a->dialect, .asker.pipe = -1};
    x->request = x->asker.frames = x->fields = x->body = (struct buf)BUF_INIT;
    x->stream = asks_for_stream(a, r->query, r->body);
    put_request(x, a, r);
    x->ping = loop_timer(loop, x->stream ? STREAM_HEAD_MS : WHOLE_HEAD_MS, on_ping, x);
    proxy_on_gone(x->conn, on_gone, x);
    slot_ask(slots, &x->slot, start, x);
}
