/* For tests: an HTTP server with a few methods in a process of its own, and bare sockets to talk to it.
 *
 * Methods: echo (its params), wait (answered by `go`, all that are open; params are its result), size {"n":N}
 * (a string of N bytes), length (of the request), late (a result with a delivered hook), state (what was
 * noticed so far), free (the server is freed from inside the call), quit (answers, drains, ends). */
#ifndef TEST_SERVED_H
#define TEST_SERVED_H

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client.h"
#include "http_server.h"
#include "io.h"
#include "loop.h"
#include "mem.h"
#include "rpc.h"

#define PATIENCE_MS 20000

static struct {
    char dir[64], path[80];
    pid_t pid;
} served;

/* ---- the server's side ---- */

static struct {
    struct loop *loop;
    struct http_server *http;
    struct rpc_call *open[64];
    int n_open, abandoned, delivered, lost;
    const char *forward_to; /* `forward` asks the server there */
} host;

static void host_echo(struct rpc_call *call, struct span params, void *ctx)
{
    (void)ctx;
    rpc_result(call, params.s ? params : (struct span){"{}", 2});
}

static void host_on_abandon(void *arg)
{
    host.abandoned++;
    for (int i = 0; i < host.n_open; i++)
        if (host.open[i] == arg)
            host.open[i] = host.open[--host.n_open];
}

static void host_on_delivered(void *arg, bool delivered)
{
    (void)arg;
    *(delivered ? &host.delivered : &host.lost) += 1;
}

static void host_wait(struct rpc_call *call, struct span params, void *ctx)
{
    (void)params, (void)ctx;
    host.open[host.n_open++] = call;
    rpc_on_abandon(call, host_on_abandon, call);
    rpc_on_delivered(call, host_on_delivered, NULL);
}

static void host_go(struct rpc_call *call, struct span params, void *ctx)
{
    (void)ctx;
    int n = host.n_open;
    host.n_open = 0;
    for (int i = 0; i < n; i++)
        rpc_result(host.open[i], params.s ? params : (struct span){"{}", 2});
    rpc_null(call);
}

static void host_late(struct rpc_call *call, struct span params, void *ctx)
{
    rpc_on_delivered(call, host_on_delivered, NULL);
    host_echo(call, params, ctx);
}

static void host_size(struct rpc_call *call, struct span params, void *ctx)
{
    (void)ctx;
    struct span n;
    size_t size = json_member(params, "n", &n, NULL) ? strtoul(n.s, NULL, 10) : 0;
    char *text = mem_alloc(size);
    memset(text, 'x', size);
    rpc_on_delivered(call, host_on_delivered, NULL);
    rpc_result_string(call, text, size);
    free(text);
}

static void host_length(struct rpc_call *call, struct span params, void *ctx)
{
    (void)params, (void)ctx;
    struct buf b BUF_AUTO = BUF_INIT;
    json_put_int(&b, (long long)rpc_request_text(call).n);
    rpc_result(call, span_of(&b));
}

static void host_state(struct rpc_call *call, struct span params, void *ctx)
{
    (void)params, (void)ctx;
    struct buf b BUF_AUTO = BUF_INIT;
    buf_addf(&b, "\"open %d pending %zu abandoned %d delivered %d lost %d\"", host.n_open,
             http_server_pending(host.http) - 1, host.abandoned, host.delivered, host.lost);
    rpc_result(call, span_of(&b));
}

static void host_end(void *arg)
{
    (void)arg;
    loop_stop(host.loop, 0);
}

static void host_quit(struct rpc_call *call, struct span params, void *ctx)
{
    (void)params, (void)ctx;
    rpc_null(call);
    http_server_drain(host.http, HTTP_DRAIN_MS, host_end, NULL);
}

static void host_free(struct rpc_call *call, struct span params, void *ctx)
{
    (void)params, (void)ctx;
    http_server_free(host.http);
    host.http = NULL;
    rpc_null(call);
    loop_stop(host.loop, 0);
}

static int connect_to(const char *path)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    snprintf(a.sun_path, sizeof a.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof a) < 0)
        io_close(&fd);
    return fd;
}

static void host_forward(struct rpc_call *call, struct span params, void *ctx)
{
    /* The other server has no method of that name; what it gets is the same request, so it looks at the
     * parameters. */
    if (!host.forward_to) {
        struct span wait;
        (json_member(params, "wait", &wait, NULL) ? host_wait : host_late)(call, params, ctx);
        return;
    }
    rpc_forward(call, host.loop, connect_to(host.forward_to), NULL, NULL);
}

static rpc_handler host_find(void *ctx, const char *method, void **handler_ctx)
{
#define METHOD(word)                                                                                         \
    {                                                                                                        \
        .name = #word, .run = host_##word                                                                    \
    }
    static const struct rpc_method methods[] = {
        METHOD(echo),  METHOD(wait), METHOD(go),   METHOD(late),    METHOD(size), METHOD(length),
        METHOD(state), METHOD(quit), METHOD(free), METHOD(forward), {0},
    };
    (void)ctx, (void)handler_ctx;
    return rpc_find(methods, method);
}

static _Noreturn void host_run(int listen_fd)
{
    host.loop = loop_new(NULL);
    host.http = http_server_new(host.loop, listen_fd, host_find, NULL);
    loop_run(host.loop);
    if (host.http)
        http_server_free(host.http);
    loop_free(host.loop);
    exit(0); /* with the sanitizers' report */
}

/* ---- the test's side ---- */

static int listen_at(const char *path)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    snprintf(a.sun_path, sizeof a.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(listen(fd, 128), 0);
    return fd;
}

/* Starts one more server at `path`. */
static pid_t serve_at(const char *path, const char *forward_to)
{
    int fd = listen_at(path);
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        host.forward_to = forward_to;
        alarm(120);
        host_run(fd);
    }
    close(fd);
    return pid;
}

static int served_start(void **state)
{
    (void)state;
    snprintf(served.dir, sizeof served.dir, "/tmp/served-XXXXXX");
    if (!mkdtemp(served.dir))
        return -1;
    snprintf(served.path, sizeof served.path, "%s/s", served.dir);
    served.pid = serve_at(served.path, NULL);
    return 0;
}

static int dial(void)
{
    int fd = connect_to(served.path);
    assert_true(fd >= 0);
    return fd;
}

static void post(struct buf *out, const char *body)
{
    buf_addf(out, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n%s", strlen(body), body);
}

static void request(struct buf *out, const char *id, const char *method, const char *params)
{
    char body[512];
    snprintf(body, sizeof body, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"%s\"%s%s}", id, method,
             params ? ",\"params\":" : "", params ? params : "");
    post(out, body);
}

static void say(int fd, const void *data, size_t n)
{
    assert_int_equal(io_write_all(fd, data, n), 0);
}

static void say_request(int fd, const char *id, const char *method, const char *params)
{
    struct buf b BUF_AUTO = BUF_INIT;
    request(&b, id, method, params);
    say(fd, b.data, b.len);
}

/* Reads n more bytes, or to the end of the file when n is SIZE_MAX (a reset counts as one). */
static void hear(int fd, struct buf *in, size_t n)
{
    while (n > 0) {
        char data[65536];
        struct pollfd p = {.fd = fd, .events = POLLIN};
        assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
        ssize_t got = recv(fd, data, n < sizeof data ? n : sizeof data, 0);
        if (got <= 0 && n == SIZE_MAX)
            return;
        assert_true(got > 0);
        buf_add(in, data, (size_t)got);
        n -= n == SIZE_MAX ? 0 : (size_t)got;
    }
}

/* Reads one answer; gives the status, and the body in *body. */
static int hear_answer(int fd, struct buf *body)
{
    struct buf head BUF_AUTO = BUF_INIT;
    while (head.len < 4 || memcmp(head.data + head.len - 4, "\r\n\r\n", 4) != 0)
        hear(fd, &head, 1);
    const char *length = strstr(head.data, "Content-Length: ");
    buf_truncate(body, 0);
    hear(fd, body, length ? strtoul(length + 16, NULL, 10) : 0);
    return (int)strtol(head.data + 9, NULL, 10);
}

static void expect_answer(int fd, const char *body)
{
    struct buf b BUF_AUTO = BUF_INIT;
    assert_int_equal(hear_answer(fd, &b), 200);
    assert_string_equal(buf_str(&b), body);
}

/* Waits until the server says this of itself. */
static void expect_state(const char *path, const char *expected)
{
    char want[256];
    struct buf b BUF_AUTO = BUF_INIT;
    snprintf(want, sizeof want, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"%s\"}", expected);
    for (int i = 0; i < PATIENCE_MS / 10; i++) {
        int fd = connect_to(path);
        assert_true(fd >= 0);
        say_request(fd, "1", "state", NULL);
        assert_int_equal(hear_answer(fd, &b), 200);
        close(fd);
        if (strcmp(b.data, want) == 0)
            return;
        usleep(10000);
    }
    fail_msg("expected %s, last %s", want, b.data);
}

static void expect_ended(pid_t pid)
{
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void quit(const char *path, pid_t pid)
{
    int fd = connect_to(path);
    assert_true(fd >= 0);
    say_request(fd, "1", "quit", NULL);
    expect_answer(fd, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":null}");
    close(fd);
    expect_ended(pid);
}

static int served_stop(void **state)
{
    (void)state;
    if (served.pid > 0)
        quit(served.path, served.pid);
    served.pid = 0;
    unlink(served.path);
    return rmdir(served.dir);
}

#endif
