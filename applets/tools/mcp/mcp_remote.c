/* Each request is asked by a process of its own, which may wait: for the connection, for TLS, for a stream of
 * events. Lines on stdout are written under a lock. What begins a session, and what nobody answers, is sent
 * by the first process, one after the other. */
#include "mcp_remote.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/release/fetch_url.h"
#include "http_response.h"
#include "io.h"
#include "json.h"
#include "mem.h"
#include "net.h"
#include "relocate.h"
#include "rpc.h"
#include "tls.h"

#define CONNECT_MS 30000
#define SILENCE_MS (24 * 3600 * 1000)
#define AGAIN_MS 1000 /* before a stream that has ended is asked for again */
#define REST_MS 1000  /* for the last answers that come by a stream */
#define RESUMES 60    /* of the stream of one answer, where it ends too soon */
#define ASKERS_MAX 64
#define LINE_MAX_BYTES (64u << 20)
#define PIECE 16384
#define SHORT 256

/* What all processes know. */
struct remote {
    struct fetch_url url;
    struct buf headers;
    char session[SHORT], revision[32]; /* "": none */
    bool old;                          /* 2024-11-05: answers come by the stream that was asked for first */
    int lock;                          /* a file; -1: none can be had */
    int askers;
    pid_t listener;
};

/* One exchange. */
struct exchange {
    struct remote *remote;
    struct http_response response;
    struct tls *tls;
    int fd;
    bool events, keeps; /* the body is a stream of them; the head is to be remembered */
    bool said;          /* an answer was passed on */
    struct buf line, data, body;
    char event[32], last_id[SHORT];
    int endpoint; /* where the address goes that an old server tells; -1: nowhere */
};

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

static void pass_one_on(struct exchange *x, struct span message)
{
    struct span method;
    x->said = x->said || json_kind(message) != JSON_OBJECT || !json_member(message, "method", &method, NULL);
    say(x->remote, message);
}

/* One message, or several in an array. */
static void pass_on(struct exchange *x, struct span text)
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

static void say_error(const struct remote *r, struct span id, const char *why)
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
    struct exchange *x = arg;
    if (strcasecmp(name, "content-type") == 0)
        x->events = strncasecmp(value, "text/event-stream", 17) == 0;
    if (x->keeps && strcasecmp(name, "mcp-session-id") == 0)
        copy_value(x->remote->session, sizeof x->remote->session, value);
}

static void take_event(struct exchange *x)
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

static void take_event_line(struct exchange *x, char *line)
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
    struct exchange *x = arg;
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

static int begin(struct exchange *x, struct err *err)
{
    const struct fetch_url *url = &x->remote->url;
    if (url->plain) {
        x->fd = net_connect(url->host, url->port, CONNECT_MS, err);
        return x->fd < 0 ? -1 : 0;
    }
    if (code_unpack(CODE_tls, err) < 0)
        return -1;
    x->tls = tls_open(url->host, url->port, NULL, CONNECT_MS, err);
    if (!x->tls)
        return -1;
    tls_timeout(x->tls, SILENCE_MS);
    return 0;
}

static int send_all(struct exchange *x, struct span text, struct err *err)
{
    if (x->tls)
        return tls_write(x->tls, text.s, text.n, err);
    return io_write_all(x->fd, text.s, text.n) == 0 ? 0 : err_sys(err, ERR_TOOL, errno, "it doesn't listen");
}

static ssize_t receive_some(struct exchange *x, char *piece, size_t n, struct err *err)
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

static void put_head(const struct exchange *x, const char *method, struct span body, struct buf *out)
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

static int exchange(struct exchange *x, const char *method, struct span body, struct err *err)
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

static void exchange_init(struct exchange *x, struct remote *r)
{
    *x = (struct exchange){.remote = r, .fd = -1, .endpoint = -1};
    x->line = x->data = x->body = (struct buf){.max = LINE_MAX_BYTES};
}

static void exchange_release(struct exchange *x)
{
    buf_release(&x->line);
    buf_release(&x->data);
    buf_release(&x->body);
    io_close(&x->endpoint);
}

/* Sends a message, and passes on what comes of it. The status; -1 with err. */
static int post(struct exchange *x, struct span message, struct err *err)
{
    if (exchange(x, "POST", message, err) < 0)
        return -1;
    if (x->response.status / 100 == 2 && x->body.len > 0 && !x->events)
        pass_on(x, span_of(&x->body));
    return x->response.status;
}

/* What its status says where there is no answer. */
static void say_status(const struct exchange *x, int status, struct span id)
{
    char why[SHORT];
    size_t n = x->body.len < 120 ? x->body.len : 120;
    if (status < 300)
        snprintf(why, sizeof why, "it gave no answer (status %d)", status);
    else
        snprintf(why, sizeof why, "status %d%s%.*s", status, n > 0 ? ": " : "", (int)n, buf_str(&x->body));
    say_error(x->remote, id, why);
}

/* Its stream has ended before the answer: what comes behind the last event is asked for. */
static int ask_for_the_rest(struct exchange *x, int status, struct err *err)
{
    for (int i = 0; i < RESUMES && !x->said && *x->last_id && (status < 0 || status == 200); i++) {
        buf_truncate(&x->line, 0);
        buf_truncate(&x->data, 0);
        poll(NULL, 0, AGAIN_MS);
        status = exchange(x, "GET", (struct span){"", 0}, err) < 0 ? -1 : x->response.status;
    }
    return status;
}

static void ask(struct remote *r, struct span message, struct span id)
{
    struct exchange x;
    struct err err;
    exchange_init(&x, r);
    int status = post(&x, message, &err);
    if (id.s)
        status = ask_for_the_rest(&x, status, &err);
    bool later = r->old && status / 100 == 2;
    if (status < 0 && id.s && !x.said)
        say_error(r, id, err.msg);
    else if (status >= 0 && id.s && !x.said && !later)
        say_status(&x, status, id);
    exchange_release(&x);
}

/* ---- processes ---- */

/* None outlives the first one, which may be killed. */
static pid_t begin_process(void)
{
    pid_t parent = getpid(), pid = fork();
    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(0);
    close(STDIN_FILENO);
    return 0;
}

/* ---- streams that are asked for ---- */

/* In a process of its own. `endpoint`: of an old server, which has said nothing yet. */
_Noreturn static void listen_on(struct remote *r, int endpoint)
{
    struct exchange x;
    struct err err;
    exchange_init(&x, r);
    x.endpoint = endpoint;
    for (;;) {
        int result = exchange(&x, "GET", (struct span){"", 0}, &err);
        if (result == 0 && (x.response.status != 200 || !x.events))
            _exit(0); /* it has none */
        if (r->old)
            _exit(0); /* its session has ended */
        buf_truncate(&x.line, 0);
        buf_truncate(&x.data, 0);
        poll(NULL, 0, AGAIN_MS);
    }
}

static int begin_listening(struct remote *r, int keep)
{
    r->listener = begin_process();
    if (r->listener == 0)
        listen_on(r, keep);
    return r->listener > 0 ? 0 : -1;
}

/* A server of 2024-11-05 tells by its stream where messages go. */
static int begin_old(struct remote *r, struct err *err)
{
    int pipes[1][2];
    struct buf said BUF_AUTO = BUF_INIT;
    struct fetch_url url = {0};
    if (io_pipes(pipes, 1) < 0)
        return err_sys(err, ERR_TOOL, errno, "no pipe can be had");
    r->old = true;
    int result = begin_listening(r, pipes[0][1]);
    io_close(&pipes[0][1]);
    if (result == 0)
        io_read_within(pipes[0][0], CONNECT_MS, &said);
    io_close(&pipes[0][0]);
    if (said.len < 2)
        return err_set(err, ERR_TOOL, "%s speaks MCP in none of its ways over HTTP", r->url.authority);
    said.data[strcspn(said.data, "\r\n")] = '\0';
    bool path = *said.data == '/';
    char *address MEM_AUTO = mem_printf("%s%s%s",
                                        !path          ? ""
                                        : r->url.plain ? "http://"
                                                       : "https://",
                                        path ? r->url.authority : "", said.data);
    if (fetch_url_parse_any(address, &url, err) < 0)
        return -1;
    if (strcmp(url.authority, r->url.authority) != 0 || url.plain != r->url.plain)
        return err_set(err, ERR_TOOL, "%s sends messages on to another server", r->url.authority);
    fetch_url_release(&r->url);
    r->url = url;
    return 0;
}

/* ---- the session ---- */

/* The first message, which tells what kind of server it is. */
static void initialize(struct remote *r, struct span message, struct span id)
{
    struct exchange x;
    struct err err;
    exchange_init(&x, r);
    x.keeps = true;
    int status = post(&x, message, &err);
    if (status == 404 || status == 405 || (status == 400 && !*r->session)) {
        if (begin_old(r, &err) < 0)
            say_error(r, id, err.msg);
        else
            ask(r, message, id);
    } else if (status < 0) {
        say_error(r, id, err.msg);
    } else if (!x.said) {
        say_status(&x, status, id);
    }
    exchange_release(&x);
}

static void wait_for_one(struct remote *r, int how)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, how)) > 0)
        if (pid == r->listener)
            r->listener = 0;
        else if (--r->askers < ASKERS_MAX)
            how = WNOHANG;
}

static void take_line(struct remote *r, struct span line)
{
    struct span method = {0}, id = {0};
    if (json_check(line, NULL) < 0)
        return;
    if (json_kind(line) == JSON_OBJECT && json_member(line, "method", &method, NULL))
        json_member(line, "id", &id, NULL);
    if (method.s && id.s && json_string_is(method, "initialize")) {
        initialize(r, line, id);
        return;
    }
    if (method.s && !id.s && json_string_is(method, "notifications/initialized") && *r->session && !r->old) {
        ask(r, line, id);
        begin_listening(r, -1);
        return;
    }
    if (json_kind(line) == JSON_OBJECT && !id.s) {
        ask(r, line, id);
        return;
    }
    wait_for_one(r, r->askers >= ASKERS_MAX ? 0 : WNOHANG);
    pid_t pid = begin_process();
    if (pid == 0) {
        ask(r, line, id);
        _exit(0);
    }
    if (pid > 0)
        r->askers++;
    else
        say_error(r, id, err_text(errno));
}

static void take_lines(struct remote *r)
{
    struct buf in BUF_AUTO = {.max = (size_t)2 * LINE_MAX_BYTES};
    ssize_t n;
    while ((n = io_read_more(STDIN_FILENO, &in)) > 0 || (n < 0 && errno == EINTR)) {
        size_t at = 0;
        for (char *end; in.len > at && (end = memchr(in.data + at, '\n', in.len - at));) {
            size_t stop = (size_t)(end - in.data);
            take_line(r, (struct span){in.data + at, stop - at});
            at = stop + 1;
        }
        buf_consume(&in, at);
    }
    if (in.len > 0)
        take_line(r, span_of(&in));
}

/* Answers that are still to come do come; what was begun is ended. */
static void finish(struct remote *r)
{
    struct exchange x;
    struct err err;
    if (r->listener > 0 && !r->old)
        kill(r->listener, SIGKILL);
    else if (r->listener > 0)
        poll(NULL, 0, REST_MS);
    while (r->askers > 0) {
        int before = r->askers;
        wait_for_one(r, 0);
        if (r->askers == before && !r->listener)
            break;
    }
    if (*r->session && !r->old) {
        exchange_init(&x, r);
        exchange(&x, "DELETE", (struct span){"", 0}, &err);
        exchange_release(&x);
    }
    if (r->listener > 0)
        kill(r->listener, SIGKILL);
}

static int add_header(struct remote *r, const char *text, size_t n, struct err *err)
{
    const char *colon = memchr(text, ':', n);
    if (!colon || colon == text || memchr(text, '\r', n) || memchr(text, '\n', n))
        return err_set(err, ERR_PARAMS, "a header is 'Name: value', not '%.*s'", (int)(n < 60 ? n : 60),
                       text);
    return buf_addf(&r->headers, "%.*s\r\n", (int)n, text);
}

int mcp_remote(const char *url, const char *const *headers, struct err *err)
{
    struct remote r = {.headers = BUF_INIT, .lock = (int)memfd_create("lock", MFD_CLOEXEC)};
    const char *more = getenv(MCP_REMOTE_HEADERS);
    if (fetch_url_parse_any(url, &r.url, err) < 0)
        return -1;
    for (; *headers; headers++)
        if (add_header(&r, *headers, strlen(*headers), err) < 0)
            return -1;
    for (size_t n; more && *more; more += n + (more[n] == '\n')) {
        n = strcspn(more, "\n");
        if (n > 0 && add_header(&r, more, n, err) < 0)
            return -1;
    }
    signal(SIGPIPE, SIG_IGN);
    take_lines(&r);
    finish(&r);
    return 0;
}
