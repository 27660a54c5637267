#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "upstream.h"
#include "http_response.h"
#include "io.h"
#include "mem.h"
#include "net.h"
#include "relocate.h"
#include "tls.h"

#define CONNECT_MS 30000
#define SILENCE_MS (30 * 60 * 1000) /* models may think for long */
#define PIECE 65536

struct asking {
    struct tls *tls; /* NULL: fd is plain */
    int fd, out;
    struct buf fields; /* of the answer's head, that are passed on */
    bool told;         /* the head is */
};

static void put(int out, char letter, const char *data, size_t n)
{
    uint32_t length = (uint32_t)n;
    char prefix[UPSTREAM_PREFIX] = {letter};
    memcpy(prefix + 1, &length, sizeof length);
    if (io_write_all(out, prefix, sizeof prefix) < 0 || io_write_all(out, data, n) < 0)
        _exit(0); /* nobody waits for it */
}

static void on_field(void *arg, const char *name, const char *value)
{
    struct asking *a = arg;
    if (strcasecmp(name, "content-type") == 0 || dialect_passes(name))
        buf_addf(&a->fields, "%s: %s\r\n", name, value);
}

static void tell_head(struct asking *a, const struct http_response *r)
{
    struct buf head BUF_AUTO = BUF_INIT;
    if (a->told || r->state == RESPONSE_HEAD)
        return;
    buf_addf(&head, "%d\n%s", r->status, buf_str(&a->fields));
    put(a->out, UPSTREAM_HEAD, head.data, head.len);
    a->told = true;
}

static struct http_response *response; /* whose body it is: the head is told in front of it */

static int on_body(void *arg, const char *data, size_t n, struct err *err)
{
    struct asking *a = arg;
    (void)err;
    tell_head(a, response);
    put(a->out, UPSTREAM_BODY, data, n);
    return 0;
}

static int say(struct asking *a, struct span text, struct err *err)
{
    if (a->tls)
        return tls_write(a->tls, text.s, text.n, err);
    return io_write_all(a->fd, text.s, text.n) == 0 ? 0 : err_sys(err, ERR_TOOL, errno, "it doesn't listen");
}

static ssize_t hear(struct asking *a, char *piece, size_t n, struct err *err)
{
    if (a->tls)
        return tls_read(a->tls, piece, n, err);
    for (;;) {
        ssize_t got = read(a->fd, piece, n);
        if (got >= 0)
            return got;
        if (errno == EINTR)
            continue;
        if (errno != EAGAIN || net_wait(a->fd, POLLIN, SILENCE_MS) < 0)
            return err_sys(err, ERR_TOOL, errno, "it has broken the connection");
    }
}

static int receive(struct asking *a, struct http_response *r, struct err *err)
{
    static char piece[PIECE] MEM_LARGE;
    while (r->state != RESPONSE_COMPLETE) {
        ssize_t n = hear(a, piece, sizeof piece, err);
        if (n < 0 || (n == 0 && http_response_end(r, err) < 0) ||
            http_response_feed(r, piece, (size_t)n, err) < 0)
            return -1;
    }
    tell_head(a, r);
    return 0;
}

static int begin(struct asking *a, const struct fetch_url *url, struct err *err)
{
    if (url->plain) {
        a->fd = net_connect(url->host, url->port, CONNECT_MS, err);
        return a->fd < 0 ? -1 : 0;
    }
    if (code_unpack(CODE_tls, err) < 0)
        return -1;
    a->tls = tls_open(url->host, url->port, NULL, CONNECT_MS, err);
    if (!a->tls)
        return -1;
    tls_timeout(a->tls, SILENCE_MS);
    return 0;
}

void upstream_ask(const struct fetch_url *url, struct span request, int out)
{
    struct err err;
    struct http_response r;
    struct asking a = {.out = out, .fd = -1, .fields = BUF_INIT};
    http_response_init(&r);
    r.field = on_field;
    r.body = on_body;
    r.any = true;
    r.arg = &a;
    response = &r;
    if (begin(&a, url, &err) < 0 || say(&a, request, &err) < 0 || receive(&a, &r, &err) < 0)
        put(out, UPSTREAM_FAILED, err.msg, strlen(err.msg));
    else
        put(out, UPSTREAM_END, "", 0);
    _exit(0);
}
