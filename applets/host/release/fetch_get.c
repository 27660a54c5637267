#include "fetch_get.h"

#include "fetch_url.h"
#include "io.h"
#include "mem.h"
#include "tls.h"
#include "version.h"

#define REDIRECTS_MAX 10
#define TRICKLE 256 /* bytes a second: a server that sends less keeps us for nothing */

/* ---- one request and its answer ---- */

struct answer {
    struct http_response response;
    const struct fetch_sink *sink;
    bool begun;
};

static int begin(struct answer *a, struct err *err)
{
    if (a->begun)
        return 0;
    a->begun = true;
    return a->sink->begin(a->sink->arg, &a->response, err);
}

static int take_body(void *arg, const char *data, size_t n, struct err *err)
{
    struct answer *a = arg;
    return begin(a, err) < 0 ? -1 : a->sink->body(a->sink->arg, data, n, err);
}

static int ask(struct tls *t, const struct fetch_url *url, unsigned long long from, struct err *err)
{
    struct buf request BUF_AUTO = BUF_INIT;
    buf_addf(&request,
             "GET %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: toolbox/%s\r\nAccept: */*\r\nAccept-Encoding: "
             "identity\r\n"
             "Connection: close\r\n",
             url->path, url->authority, toolbox_version);
    if (from > 0)
        buf_addf(&request, "Range: bytes=%llu-\r\n", from);
    buf_adds(&request, "\r\n");
    return tls_write(t, request.data, request.len, err);
}

/* How much has come in the time that silence is endured for. */
struct pace {
    long long since; /* ms */
    size_t bytes;
};

static bool is_trickle(struct pace *p, size_t n, int timeout_ms)
{
    long long now = now_ms();
    p->bytes += n;
    if (now - p->since < timeout_ms)
        return false;
    bool trickle = p->bytes < (size_t)timeout_ms / 1000 * TRICKLE;
    *p = (struct pace){.since = now};
    return trickle;
}

/* What is behind the head of anything but a file is nobody's concern. */
static bool is_over(const struct http_response *r)
{
    return r->state == RESPONSE_COMPLETE || (r->state != RESPONSE_HEAD && r->status / 100 != 2);
}

static int receive(struct tls *t, struct answer *a, int timeout_ms, enum fetch_failure *failure,
                   struct err *err)
{
    char piece[16384];
    struct pace pace = {.since = now_ms()};
    while (!is_over(&a->response)) {
        ssize_t n = tls_read(t, piece, sizeof piece, err);
        if (n < 0 || (n == 0 && http_response_end(&a->response, err) < 0)) {
            *failure = FETCH_CUT;
            return -1;
        }
        if (is_trickle(&pace, (size_t)n, timeout_ms)) {
            *failure = FETCH_SLOW;
            return err_set(err, ERR_TOOL, "the server sends less than %d bytes a second", TRICKLE);
        }
        if (http_response_feed(&a->response, piece, (size_t)n, err) < 0)
            return -1;
        if (a->response.state != RESPONSE_HEAD && a->response.status / 100 == 2 && begin(a, err) < 0)
            return -1;
    }
    return 0;
}

static int exchange(const struct fetch_options *options, const struct fetch_url *url, unsigned long long from,
                    struct answer *a, enum fetch_failure *failure, struct err *err)
{
    struct tls *t = tls_open(url->host, url->port, options->trust, options->timeout_ms, err);
    if (!t)
        return -1;
    int result = ask(t, url, from, err);
    *failure = result < 0 ? FETCH_CUT : FETCH_FINAL;
    if (result == 0)
        result = receive(t, a, options->timeout_ms, failure, err);
    tls_close(t);
    return result;
}

/* ---- redirects ---- */

static bool is_redirect(int status)
{
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

static int judge(const struct http_response *r, const char *address, struct err *err)
{
    if (r->status == 200 || r->status == 206 || r->status == 404 || r->status == 416)
        return 0;
    return err_set(err, ERR_TOOL, "the server answers %s with status %d", address, r->status);
}

/* One step: 1 with *next when it leads on to another address. */
static int step(const struct fetch_options *options, const char *address, unsigned long long from,
                const struct fetch_sink *sink, int *status, enum fetch_failure *failure, char **next,
                struct err *err)
{
    struct fetch_url url = {0};
    struct answer a = {.sink = sink};
    http_response_init(&a.response);
    a.response.body = take_body;
    a.response.arg = &a;
    int result = fetch_url_parse(address, &url, err);
    if (result == 0)
        result = exchange(options, &url, from, &a, failure, err);
    *status = a.response.status;
    if (result == 0 && is_redirect(a.response.status) && a.response.location.len > 0) {
        *next = fetch_url_resolve(&url, buf_str(&a.response.location));
        result = 1;
    } else if (result == 0) {
        result = judge(&a.response, address, err);
    }
    http_response_release(&a.response);
    fetch_url_release(&url);
    return result;
}

int fetch_get(const struct fetch_options *options, const char *address, unsigned long long from,
              const struct fetch_sink *sink, int *status, enum fetch_failure *failure, struct err *err)
{
    char *at MEM_AUTO = mem_strdup(address);
    *failure = FETCH_FINAL;
    for (int i = 0; i <= REDIRECTS_MAX; i++) {
        char *next MEM_AUTO = NULL;
        int result = step(options, at, from, sink, status, failure, &next, err);
        if (result < 0 && i > 0)
            err_wrap(err, "%s leads to %s", address, at);
        if (result <= 0)
            return result;
        char *old = at;
        at = next;
        next = old;
    }
    return err_set(err, ERR_TOOL, "%s leads from one address to the next, more than %d times", address,
                   REDIRECTS_MAX);
}
