#include "mcp_remote_exchange.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "io.h"
#include "json.h"
#include "net.h"
#include "relocate.h"
#include "rpc.h"
#include "tls.h"

#define SILENCE_MS (24 * 3600 * 1000)
#define PIECE 16384

/* ---- lines out ---- */

static void say(const struct remote *r, struct span message)
{
    struct buf line BUF_AUTO = BUF_INIT;
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    json_compact(&line, message);
    buf_addc(&line, '\n');
    if (r->lock >= 0)
        fcntl(r->lock, F_SETLKW, &whole);
    if (io_write_all(STDOUT_FILENO, line.data, line.len) < 0)
        _exit(0); /* nobody reads any more */
    whole.l_type = F_UNLCK;
    if (r->lock >= 0)
        fcntl(r->lock, F_SETLK, &whole);
}

/* The revision that a server has agreed on. */
static void keep_revision(struct remote *r, struct span answer)
{
    struct span result, version;
    if (json_kind(answer) != JSON_OBJECT || !json_member(answer, "result", &result, NULL) ||
        json_kind(result) != JSON_OBJECT || !json_member(result, "protocolVersion", &version, NULL) ||
        json_kind(version) != JSON_STRING || version.n - 2 >= sizeof r->revision)
        return;
    memcpy(r->revision, version.s + 1, version.n - 2);
    r->revision[version.n - 2] = '\0';
}

static void pass_one_on(struct remote_exchange *x, struct span message)
{
    struct span method;
    x->said = x->said || json_kind(message) != JSON_OBJECT || !json_member(message, "method", &method, NULL);
    say(x->remote, message);
}

/* One message, or several in an array. */
static void pass_on(struct remote_exchange *x, struct span text)
{
    struct span one;
    if (json_check(text, NULL) < 0)
        return;
    if (x->keeps)
        keep_revision(x->remote, text);
    if (json_kind(text) != JSON_ARRAY)
        pass_one_on(x, text);
    else
        for (size_t at = 0; json_element(text, &at, &one);)
            pass_one_on(x, one);
}

void remote_say_error(const struct remote *r, struct span id, const char *why)
{
    struct buf text BUF_AUTO = BUF_INIT;
    struct err err;
    err_set(&err, -32603, "%s can't be asked: %s", r->url.authority, why);
    rpc_put_error(&text, id, &err);
    say(r, span_of(&text));
}

/* ---- the answer ---- */

static void copy_value(char *to, size_t size, const char *value)
{
    if (strlen(value) < size)
        memcpy(to, value, strlen(value) + 1);
}

static void on_field(void *arg, const char *name, const char *value)
{
    struct remote_exchange *x = arg;
    if (strcasecmp(name, "content-type") == 0)
        x->events = strncasecmp(value, "text/event-stream", 17) == 0;
    if (x->keeps && strcasecmp(name, "mcp-session-id") == 0)
        copy_value(x->remote->session, sizeof x->remote->session, value);
}

static void take_event(struct remote_exchange *x)
{
    if (strcmp(x->event, "endpoint") == 0 && x->endpoint >= 0) {
        buf_addc(&x->data, '\n');
        if (io_write_all(x->endpoint, x->data.data, x->data.len) < 0)
            _exit(0);
        io_close(&x->endpoint);
    } else if (x->data.len > 0) {
        pass_on(x, span_of(&x->data));
    }
    buf_truncate(&x->data, 0);
    x->event[0] = '\0';
}

static void take_event_line(struct remote_exchange *x, char *line)
{
    char *value = strchr(line, ':');
    if (!*line) {
        take_event(x);
        return;
    }
    if (!value)
        return;
    *value++ = '\0';
    value += *value == ' ';
    if (strcmp(line, "data") == 0) {
        if (x->data.len > 0)
            buf_addc(&x->data, '\n');
        buf_adds(&x->data, value);
    } else if (strcmp(line, "event") == 0) {
        copy_value(x->event, sizeof x->event, value);
    } else if (strcmp(line, "id") == 0) {
        copy_value(x->last_id, sizeof x->last_id, value);
    }
}

static int on_body(void *arg, const char *data, size_t n, struct err *err)
{
    struct remote_exchange *x = arg;
    if (!x->events || x->response.status != 200)
        return buf_add(&x->body, data, n) == 0 ? 0
                                               : err_set(err, ERR_TOOL, "its answer has more than 64 MiB");
    if (buf_add(&x->line, data, n) < 0)
        return err_set(err, ERR_TOOL, "an event of it has more than 64 MiB");
    size_t at = 0;
    for (char *end; (end = memchr(x->line.data + at, '\n', x->line.len - at));
         at = (size_t)(end - x->line.data) + 1) {
        *end = '\0';
        if (end > x->line.data + at && end[-1] == '\r')
            end[-1] = '\0';
        take_event_line(x, x->line.data + at);
    }
    buf_consume(&x->line, at);
    return 0;
}

/* ---- one exchange ---- */

static int begin(struct remote_exchange *x, struct err *err)
{
    const struct fetch_url *url = &x->remote->url;
    if (url->plain) {
        x->fd = net_connect(url->host, url->port, REMOTE_CONNECT_MS, err);
        return x->fd < 0 ? -1 : 0;
    }
    if (code_unpack(CODE_tls, err) < 0)
        return -1;
    x->tls = tls_open(url->host, url->port, NULL, REMOTE_CONNECT_MS, err);
    if (!x->tls)
        return -1;
    tls_timeout(x->tls, SILENCE_MS);
    return 0;
}

static int send_all(struct remote_exchange *x, struct span text, struct err *err)
{
    if (x->tls)
        return tls_write(x->tls, text.s, text.n, err);
    return io_write_all(x->fd, text.s, text.n) == 0 ? 0 : err_sys(err, ERR_TOOL, errno, "it doesn't listen");
}

static ssize_t receive_some(struct remote_exchange *x, char *piece, size_t n, struct err *err)
{
    if (x->tls)
        return tls_read(x->tls, piece, n, err);
    for (;;) {
        ssize_t got = read(x->fd, piece, n);
        if (got >= 0)
            return got;
        if (errno != EINTR && (errno != EAGAIN || net_wait(x->fd, POLLIN, SILENCE_MS) < 0))
            return err_sys(err, ERR_TOOL, errno, "it has broken the connection");
    }
}

static void put_head(const struct remote_exchange *x, const char *method, struct span body, struct buf *out)
{
    const struct remote *r = x->remote;
    buf_addf(out, "%s %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\nUser-Agent: toolbox\r\n", method,
             r->url.path, r->url.authority);
    buf_adds(out, *method == 'G' ? "Accept: text/event-stream\r\n"
                                 : "Accept: application/json, text/event-stream\r\n");
    if (*r->session)
        buf_addf(out, "Mcp-Session-Id: %s\r\n", r->session);
    if (*r->revision)
        buf_addf(out, "MCP-Protocol-Version: %s\r\n", r->revision);
    if (*x->last_id)
        buf_addf(out, "Last-Event-ID: %s\r\n", x->last_id);
    buf_add(out, r->headers.data, r->headers.len);
    if (*method == 'P')
        buf_addf(out, "Content-Type: application/json\r\nContent-Length: %zu\r\n", body.n);
    buf_adds(out, "\r\n");
    buf_add(out, body.s, body.n);
}

int remote_exchange(struct remote_exchange *x, const char *method, struct span body, struct err *err)
{
    struct buf request BUF_AUTO = BUF_INIT;
    static char piece[PIECE];
    struct http_response *p = &x->response;
    http_response_init(p);
    p->field = on_field;
    p->body = on_body;
    p->any = true;
    p->arg = x;
    x->events = false;
    put_head(x, method, body, &request);
    int result = begin(x, err);
    if (result == 0)
        result = send_all(x, span_of(&request), err);
    while (result == 0 && p->state != RESPONSE_COMPLETE) {
        ssize_t n = receive_some(x, piece, sizeof piece, err);
        if (n < 0 || (n == 0 && http_response_end(p, err) < 0) ||
            http_response_feed(p, piece, (size_t)n, err) < 0)
            result = -1;
    }
    if (x->tls)
        tls_close(x->tls);
    x->tls = NULL;
    io_close(&x->fd);
    http_response_release(p);
    return result;
}

void remote_exchange_init(struct remote_exchange *x, struct remote *r)
{
    *x = (struct remote_exchange){.remote = r, .fd = -1, .endpoint = -1};
    x->line = x->data = x->body = (struct buf){.max = REMOTE_LINE_MAX};
}

void remote_exchange_release(struct remote_exchange *x)
{
    buf_release(&x->line);
    buf_release(&x->data);
    buf_release(&x->body);
    io_close(&x->endpoint);
}

int remote_post(struct remote_exchange *x, struct span message, struct err *err)
{
    if (remote_exchange(x, "POST", message, err) < 0)
        return -1;
    if (x->response.status / 100 == 2 && x->body.len > 0 && !x->events)
        pass_on(x, span_of(&x->body));
    return x->response.status;
}
