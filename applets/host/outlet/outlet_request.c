#include "host/outlet/outlet_request.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

#include "http_frame.h"

#define SOCKS4_MAX 1024

const char *const outlet_hows[] = {"http", "connect", "socks4", "socks5"};

static void begin_http(struct outlet_request *r)
{
    http_parser_release(&r->body);
    http_parser_init_any(&r->body);
    r->body.passes = true;
}

void outlet_request_init(struct outlet_request *r)
{
    *r = (struct outlet_request){.head = BUF_INIT};
    begin_http(r);
}

void outlet_request_release(struct outlet_request *r)
{
    buf_release(&r->head);
    http_parser_release(&r->body);
}

/* ---- answers ---- */

static void answer_http(int status, const char *why, struct buf *answer)
{
    buf_addf(answer,
             "HTTP/1.1 %d %s\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n"
             "toolbox forward: %s\n",
             status, http_reason(status), strlen(why) + 18, why);
}

void outlet_answer(const struct outlet_request *r, int status, const char *why, struct buf *answer)
{
    const char socks5[10] = {5, (char)(status == 200 ? 0 : status == 403 ? 2 : status == 502 ? 4 : 1), 0, 1};
    const char socks4[8] = {0, (char)(status == 200 ? 0x5a : 0x5b)};
    if (r->how == OUTLET_SOCKS5)
        buf_add(answer, socks5, sizeof socks5);
    else if (r->how == OUTLET_SOCKS4)
        buf_add(answer, socks4, sizeof socks4);
    else if (status != 200)
        answer_http(status, why, answer);
    else if (r->how == OUTLET_CONNECT)
        buf_adds(answer, "HTTP/1.1 200 Connection established\r\n\r\n");
}

static long refuse(const struct outlet_request *r, int status, const char *text, struct buf *answer,
                   const char **why)
{
    outlet_answer(r, status, text, answer);
    *why = text;
    return -1;
}

/* ---- SOCKS ---- */

static unsigned port_at(const char *at)
{
    return (unsigned)(unsigned char)at[0] << 8 | (unsigned char)at[1];
}

static bool take_host(struct outlet_request *r, const char *host, size_t n, const char *port)
{
    r->port = port_at(port);
    r->whole = r->port > 0 && outlet_host(host, n, r->host);
    return r->whole;
}

static bool take_address(struct outlet_request *r, int family, const char *at, const char *port)
{
    char text[INET6_ADDRSTRLEN];
    inet_ntop(family, at, text, sizeof text);
    return take_host(r, text, strlen(text), port);
}

static const char no_host[] = "that is no name, and no address as it is usually written";

/* Version, command, port, address, user and its end; of the address 0.0.0.x a name and its end as well. */
static long read_socks4(struct outlet_request *r, struct span data, struct buf *answer, const char **why)
{
    static const char none[3];
    bool all = data.n >= SOCKS4_MAX;
    data.n = all ? SOCKS4_MAX : data.n;
    const char *end = data.n > 8 ? memchr(data.s + 8, '\0', data.n - 8) : NULL, *name = NULL;
    r->how = OUTLET_SOCKS4;
    if (data.n > 1 && data.s[1] != 1)
        return refuse(r, 501, "of SOCKS only CONNECT is there", answer, why);
    if (end && memcmp(data.s + 4, none, 3) == 0 && data.s[7] != 0) {
        name = end + 1;
        end = memchr(name, '\0', data.n - (size_t)(name - data.s));
    }
    if (!end)
        return all ? refuse(r, 400, no_host, answer, why) : 0;
    if (name ? !take_host(r, name, (size_t)(end - name), data.s + 2)
             : !take_address(r, AF_INET, data.s + 4, data.s + 2))
        return refuse(r, 400, no_host, answer, why);
    return end + 1 - data.s;
}

/* Version, and how many ways to say who one is, of which we take the one that is none. */
static long greet_socks5(struct outlet_request *r, struct span data, struct buf *answer, const char **why)
{
    size_t n = data.n > 1 ? 2 + (size_t)(unsigned char)data.s[1] : 2;
    if (data.n < n)
        return 0;
    r->greeted = memchr(data.s + 2, 0, n - 2) != NULL;
    buf_add(answer, r->greeted ? "\5" : "\5\377", 2);
    *why = "a client that wants to say who it is can't be served";
    return r->greeted ? (long)n : -1;
}

/* Version, command, 0, kind of address, address, port. */
static long read_socks5(struct outlet_request *r, struct span data, struct buf *answer, const char **why)
{
    r->how = OUTLET_SOCKS5;
    if (!r->greeted)
        return greet_socks5(r, data, answer, why);
    if (data.n < 5)
        return 0;
    size_t kind = (unsigned char)data.s[3];
    size_t length = kind == 1 ? 4 : kind == 4 ? 16 : 1 + (size_t)(unsigned char)data.s[4];
    if (data.s[1] != 1 || (kind != 1 && kind != 3 && kind != 4))
        return refuse(r, 501, "of SOCKS only CONNECT is there", answer, why);
    if (data.n < 4 + length + 2)
        return 0;
    const char *port = data.s + 4 + length;
    if (kind == 3 ? !take_host(r, data.s + 5, length - 1, port)
                  : !take_address(r, kind == 1 ? AF_INET : AF_INET6, data.s + 4, port))
        return refuse(r, 400, no_host, answer, why);
    return (long)(4 + length + 2);
}

/* ---- HTTP ---- */

/* HOST:PORT, HOST or [ADDRESS]; `otherwise`: the port where there is none, 0: there has to be one. */
static bool take_authority(struct span text, unsigned otherwise, char host[OUTLET_HOST_MAX], unsigned *port)
{
    if (text.n == 0)
        return false;
    const char *end = text.s + text.n, *bracket = *text.s == '[' ? memchr(text.s, ']', text.n) : NULL;
    const char *colon = bracket ? bracket + 1 : memchr(text.s, ':', text.n);
    if (!colon)
        colon = end;
    *port = colon + 1 < end ? outlet_port(colon + 1, (size_t)(end - colon - 1)) : otherwise;
    const char *from = text.s + (bracket != NULL), *to = bracket ? bracket : colon;
    return *port > 0 && (colon == end || *colon == ':') &&
           (memchr(from, ':', (size_t)(to - from)) != NULL) == (bracket != NULL) &&
           outlet_host(from, (size_t)(to - from), host);
}

static bool is_field(const char *line, size_t n, const char *name)
{
    size_t length = strlen(name);
    return n > length && line[length] == ':' && strncasecmp(line, name, length) == 0;
}

/* What is between this client and us alone: a connection carries one request. */
static bool is_ours(const char *line, size_t n)
{
    static const char *const names[] = {"Host", "Connection", "Keep-Alive", "TE", "Upgrade", NULL};
    for (const char *const *name = names; *name; name++)
        if (is_field(line, n, *name))
            return true;
    return strncasecmp(line, "Proxy-", 6) == 0;
}

/* The fields behind the first line: those that go on, and what the Host says. */
static struct span copy_fields(struct outlet_request *r, const char *at, const char *end)
{
    struct span host = {0};
    for (const char *line_end; at < end; at = line_end + 2) {
        line_end = memmem(at, (size_t)(end - at), "\r\n", 2);
        size_t n = (size_t)(line_end - at);
        if (is_field(at, n, "Host")) {
            host = (struct span){at + 5 + strspn(at + 5, " \t"), 0};
            host.n = strcspn(host.s, " \t\r");
        }
        if (n > 0 && !is_ours(at, n))
            buf_add(&r->head, at, n + 2);
    }
    return host;
}

static void put_authority(struct outlet_request *r)
{
    bool v6 = strchr(r->host, ':') != NULL;
    buf_addf(&r->head, v6 ? "Host: [%s]" : "Host: %s", r->host);
    buf_addf(&r->head, r->port == 80 ? "\r\n" : ":%u\r\n", r->port);
}

/* Of the first line, whose form was seen to be right: METHOD TARGET VERSION. Where the request has to be for
 * the host that is there its Host says so. */
static bool take_head(struct outlet_request *r, struct span head)
{
    const char *target = strchr(head.s, ' ') + 1, *version = strchr(target, ' ');
    const char *path = target, *fields = strchr(version, '\n') + 1;
    bool inside = r->port > 0;
    if (strcmp(r->body.method, "CONNECT") == 0) {
        r->how = OUTLET_CONNECT;
        return !inside &&
               take_authority((struct span){target, (size_t)(version - target)}, 0, r->host, &r->port);
    }
    if (!inside) {
        if (strncasecmp(target, "http://", 7) != 0)
            return false;
        target += 7;
        path = target + strcspn(target, "/? ");
        if (!take_authority((struct span){target, (size_t)(path - target)}, 80, r->host, &r->port))
            return false;
    }
    buf_addf(&r->head, "%s %s%.*s", r->body.method, *path == '/' ? "" : "/", (int)(fields - path), path);
    put_authority(r);
    struct span host = copy_fields(r, fields, head.s + head.n);
    buf_adds(&r->head, "Connection: close\r\n\r\n");
    char there[OUTLET_HOST_MAX];
    unsigned port;
    return !inside || (*path == '/' && take_authority(host, 80, there, &port) && port == r->port &&
                       strcmp(there, r->host) == 0);
}

static long read_http(struct outlet_request *r, struct span data, struct buf *answer, const char **why)
{
    const char *end = memmem(data.s, data.n, "\r\n\r\n", 4);
    struct span head = {data.s, end ? (size_t)(end - data.s) + 4 : data.n};
    bool inside = r->port > 0;
    r->how = OUTLET_HTTP;
    if (!end && head.n <= HTTP_HEAD_MAX)
        return 0;
    if (inside)
        begin_http(r);
    http_parse(&r->body, head.s, head.n);
    if (r->body.status)
        return refuse(r, r->body.status, "that is no request of HTTP that is understood here", answer, why);
    if (r->body.state <= HTTP_HEADERS || !take_head(r, head))
        return refuse(r, inside ? 403 : 400,
                      inside ? "the request is for another host than the connection"
                             : "this is a proxy: CONNECT HOST:PORT or an absolute http:// address is wanted",
                      answer, why);
    r->whole = true;
    return (long)head.n;
}

long outlet_request_read(struct outlet_request *r, struct span data, struct buf *answer, const char **why)
{
    if (data.n == 0)
        return 0;
    if (r->port == 0 && data.s[0] == 5)
        return read_socks5(r, data, answer, why);
    return r->port == 0 && data.s[0] == 4 ? read_socks4(r, data, answer, why)
                                          : read_http(r, data, answer, why);
}

long outlet_request_body(struct outlet_request *r, struct span data)
{
    size_t n = http_parse(&r->body, data.s, data.n);
    buf_truncate(&r->body.body, 0);
    return r->body.state == HTTP_REFUSED ? -1 : (long)n;
}
