/* Any bytes from a client of the model proxy (the first says what the host answers): what is said to it is
 * HTTP, and where it is JSON, that; nothing of it stays when it has gone. Where it starts like a path, it is
 * one, of a request that is sound but for that. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "commands/model_proxy/proxy_background.h"
#include "io.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct host {
    struct proxy proxy;
    service_answer_fn answer;
    void *arg;
    int way, address_len;
    struct sockaddr_un address;
} host;

static void *call(void *of, const char *method, struct span params, service_answer_fn answer, void *arg)
{
    struct host *h = of;
    assert(*method && json_check(params, NULL) == 0);
    h->answer = h->arg ? h->answer : answer; /* one is enough: others stay open until their client goes */
    h->arg = h->arg ? h->arg : arg;
    return arg;
}

static void cancel(void *call_arg)
{
    if (host.arg == call_arg)
        host.arg = NULL;
}

static void on_failed(void *arg, const char *reason)
{
    (void)arg;
    assert(*reason);
}

/* A turn of the loop, and the answer of the host, if one was asked for. */
static void on_turn(void *arg)
{
    static const char *const results[] = {"{\"choices\":[],\"output\":[],\"content\":[]}",
                                          "{\"__inspect_provider_error__\":{\"status\":429}}", "[]",
                                          "\"{\\\"output\\\":[{}]}\""};
    struct host *h = arg;
    struct buf text BUF_AUTO = BUF_INIT;
    if (h->arg) {
        void *to = h->arg;
        const char *result = results[h->way % 4];
        h->arg = NULL;
        buf_adds(&text, result);
        h->answer(to, span_of(&text), &text, NULL);
    }
    loop_stop(h->proxy.loop, 0);
}

static void begin(void)
{
    struct err err;
    socklen_t n = sizeof host.address;
    host.address.sun_family = AF_UNIX;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    assert(fd >= 0 && bind(fd, (const void *)&host.address, sizeof host.address.sun_family) ==
                          0); /* a name of the kernel's */
    assert(listen(fd, 8) == 0 && getsockname(fd, (void *)&host.address, &n) == 0);
    host.address_len = (int)n;
    host.proxy = (struct proxy){
        .loop = loop_new(&err), .source = {&host, call, cancel}, .failed = on_failed, .headers = true};
    assert(host.proxy.loop && proxy_server_new(host.proxy.loop, fd, proxy_handle, &host.proxy));
}

static void turn(void)
{
    struct loop_source *timer = loop_timer(host.proxy.loop, 1, on_turn, &host);
    loop_run(host.proxy.loop);
    loop_drop(&timer);
}

static void check_answer(const struct buf *said)
{
    const char *head = buf_str(said), *body = strstr(head, "\r\n\r\n"),
               *length = strstr(head, "Content-Length: ");
    if (said->len == 0)
        return;
    assert(said->len > 12 && strncmp(head, "HTTP/1.1 ", 9) == 0 && body);
    size_t n = length && length < body ? strtoul(length + 16, NULL, 10) : 0;
    if (n > 0 && strstr(head, "application/json") < body &&
        (size_t)(buf_str(said) + said->len - body) >= n + 4)
        assert(json_check((struct span){body + 4, n}, NULL) == 0);
}

static void put_request(struct buf *out, const uint8_t *data, size_t size)
{
    if (size == 0 || *data != '/') {
        buf_add(out, data, size);
        return;
    }
    size_t n = 0;
    while (n < size && data[n] > ' ' && data[n] < 127)
        n++;
    buf_adds(out, host.way & 4 ? "GET " : host.way & 8 ? "DELETE " : "POST ");
    buf_add(out, data, n);
    buf_addf(out, " HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
             size - n);
    buf_add(out, data + n, size - n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf said BUF_AUTO = BUF_INIT;
    struct buf request BUF_AUTO = BUF_INIT;
    char piece[4096];
    if (size < 2 || size > 4096)
        return 0;
    if (!host.proxy.loop)
        begin();
    host.way = data[0];
    put_request(&request, data + 1, size - 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert(fd >= 0 && connect(fd, (const void *)&host.address, (socklen_t)host.address_len) == 0);
    assert(io_write_all(fd, request.data, request.len) == 0);
    turn();
    turn();
    for (ssize_t n; (n = recv(fd, piece, sizeof piece, MSG_DONTWAIT)) > 0;)
        buf_add(&said, piece, (size_t)n);
    check_answer(&said);
    close(fd);
    turn();
    background_end(&host.proxy);
    assert(!host.arg && !host.proxy.background);
    return 0;
}
