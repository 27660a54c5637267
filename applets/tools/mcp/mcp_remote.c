/* Each request is asked by a process of its own, which may wait: for the connection, for TLS, for a stream of
 * events. Lines on stdout are written under a lock. What begins a session, and what nobody answers, is sent
 * by the first process, one after the other. */
#include "mcp_remote.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io.h"
#include "json.h"
#include "mcp_remote_exchange.h"
#include "mem.h"
#include "rpc.h"

#define AGAIN_MS 1000 /* before a stream that has ended is asked for again */
#define REST_MS 1000  /* for the last answers that come by a stream */
#define RESUMES 60    /* of the stream of one answer, where it ends too soon */
#define ASKERS_MAX 64

/* ---- what is asked ---- */

/* What its status says where there is no answer. */
static void say_status(const struct remote_exchange *x, int status, struct span id)
{
    char why[REMOTE_SHORT];
    size_t n = x->body.len < 120 ? x->body.len : 120;
    if (status < 300)
        snprintf(why, sizeof why, "it gave no answer (status %d)", status);
    else
        snprintf(why, sizeof why, "status %d%s%.*s", status, n > 0 ? ": " : "", (int)n, buf_str(&x->body));
    remote_say_error(x->remote, id, why);
}

/* Its stream has ended before the answer: what comes behind the last event is asked for. */
static int ask_for_the_rest(struct remote_exchange *x, int status, struct err *err)
{
    for (int i = 0; i < RESUMES && !x->said && *x->last_id && (status < 0 || status == 200); i++) {
        buf_truncate(&x->line, 0);
        buf_truncate(&x->data, 0);
        poll(NULL, 0, AGAIN_MS);
        status = remote_exchange(x, "GET", (struct span){"", 0}, err) < 0 ? -1 : x->response.status;
    }
    return status;
}

/* False: it was asked something that it hasn't answered. */
static bool ask(struct remote *r, struct span message, struct span id)
{
    struct remote_exchange x;
    struct err err;
    remote_exchange_init(&x, r);
    int status = remote_post(&x, message, &err);
    if (id.s)
        status = ask_for_the_rest(&x, status, &err);
    bool later = r->old && status / 100 == 2;
    if (status < 0 && id.s && !x.said)
        remote_say_error(r, id, err.msg);
    else if (status >= 0 && id.s && !x.said && !later)
        say_status(&x, status, id);
    bool answered = !id.s || x.said || later;
    remote_exchange_release(&x);
    return answered;
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
    struct remote_exchange x;
    struct err err;
    remote_exchange_init(&x, r);
    x.endpoint = endpoint;
    for (;;) {
        int result = remote_exchange(&x, "GET", (struct span){"", 0}, &err);
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
        io_read_within(pipes[0][0], REMOTE_CONNECT_MS, &said);
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
    struct remote_exchange x;
    struct err err;
    remote_exchange_init(&x, r);
    x.keeps = true;
    int status = remote_post(&x, message, &err);
    if (status == 404 || status == 405 || (status == 400 && !*r->session)) {
        if (begin_old(r, &err) < 0)
            remote_say_error(r, id, err.msg);
        else
            r->answered = ask(r, message, id);
    } else if (status < 0) {
        remote_say_error(r, id, err.msg);
    } else if (!x.said) {
        say_status(&x, status, id);
    } else {
        r->answered = true;
    }
    remote_exchange_release(&x);
}

static void wait_for_one(struct remote *r, int how)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, how)) > 0)
        if (pid == r->listener) {
            r->listener = 0;
        } else {
            r->answered = r->answered || (WIFEXITED(status) && WEXITSTATUS(status) == 0);
            if (--r->askers < ASKERS_MAX)
                how = WNOHANG;
        }
}

static void take_line(struct remote *r, struct span line)
{
    struct span method = {0}, id = {0};
    if (json_check(line, NULL) < 0)
        return;
    if (json_kind(line) == JSON_OBJECT && json_member(line, "method", &method, NULL))
        json_member(line, "id", &id, NULL);
    r->asked = r->asked || (method.s && id.s);
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
    if (pid == 0)
        _exit(ask(r, line, id) ? 0 : 1);
    if (pid > 0)
        r->askers++;
    else
        remote_say_error(r, id, err_text(errno));
}

static void take_lines(struct remote *r)
{
    struct buf in BUF_AUTO = {.max = (size_t)2 * REMOTE_LINE_MAX};
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
    struct remote_exchange x;
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
        remote_exchange_init(&x, r);
        remote_exchange(&x, "DELETE", (struct span){"", 0}, &err);
        remote_exchange_release(&x);
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
    return r.asked && !r.answered
               ? err_set(err, ERR_TOOL, "%s has answered nothing that it was asked", r.url.authority)
               : 0;
}
