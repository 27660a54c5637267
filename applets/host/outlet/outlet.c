#include "host/outlet/outlet.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands/exec/dial.h"
#include "host/outlet/outlet_hello.h"
#include "host/outlet/outlet_request.h"
#include "io.h"
#include "mem.h"

enum {
    ASK_MS = 30000,   /* for a request, and for the first bytes behind it */
    LINGER_MS = 5000, /* for one who was refused to notice */
    DIALLING_MAX = 128,
    TLS_PORT = 443,
    HTTP_PORT = 80,
    TLS_FIRST = 22, /* the first byte of TLS */
};

struct outlet_client {
    const struct outlet *outlet;
    struct mux_stream *stream; /* NULL: closed while it was being connected */
    struct wire *wire;         /* NULL: not connected */
    struct loop_source *timer;
    enum { ASKS, WAITS, DIALS, CHECKED, SENDS_BODY, PASSES, REFUSED } state;
    struct outlet_request request;
    struct buf early; /* what came and was not let through yet: no more than the window */
    bool early_end;
    struct outlet_client *next; /* of those that wait */
};

static int dialling;
static struct outlet_client *waiting; /* until others are connected; the first first */

/* ---- what is said ---- */

static void note(const struct outlet_client *c, const char *decision, const char *address, const char *why)
{
    struct buf line BUF_AUTO = BUF_INIT;
    if (!c->outlet->rules)
        return;
    buf_addc(&line, '{');
    json_member_seconds(&line, "time", wall_ms());
    json_member_string(&line, "target", c->outlet->target);
    json_member_string(&line, "decision", decision);
    json_member_string(&line, "how", outlet_hows[c->request.how]);
    json_member_string(&line, "host", c->request.host[0] ? c->request.host : NULL);
    json_member_int(&line, "port", c->request.port);
    json_member_string(&line, "address", address);
    json_member_string(&line, "why", why);
    buf_adds(&line, "}\n");
    io_write_all(STDERR_FILENO, line.data, line.len);
}

static void drop(struct outlet_client *c)
{
    loop_drop(&c->timer);
    outlet_request_release(&c->request);
    buf_release(&c->early);
    free(c);
}

static void on_time(void *arg)
{
    struct outlet_client *c = arg;
    void (*said)(void) = c->outlet->wires->said;
    mux_abort(c->stream, "nothing has come in time");
    said();
}

static void set_timer(struct outlet_client *c, int ms)
{
    loop_drop(&c->timer);
    if (ms > 0)
        c->timer = loop_timer(c->outlet->wires->loop, ms, on_time, c);
}

/* The last that is said. c may be gone then. */
static void end_with(struct outlet_client *c, struct span answer)
{
    if (c->wire)
        wire_free(c->wire, false);
    c->wire = NULL;
    c->state = REFUSED;
    set_timer(c, LINGER_MS);
    mux_consumed(c->stream, c->early.len);
    buf_truncate(&c->early, 0);
    if (c->stream->sent_end || c->stream->room < answer.n) {
        mux_abort(c->stream, "refused");
        return;
    }
    mux_send(c->stream, answer.s, answer.n);
    mux_end(c->stream);
}

static void refuse(struct outlet_client *c, int status, const char *why)
{
    struct buf answer BUF_AUTO = BUF_INIT;
    note(c, status == 403 ? "refused" : "failed", NULL, why);
    outlet_answer(&c->request, status, why, &answer);
    end_with(c, span_of(&answer));
}

/* ---- bytes of who is connected; c may be gone after each ---- */

static void pass(struct outlet_client *c)
{
    struct buf early BUF_AUTO = c->early;
    c->early = (struct buf)BUF_INIT;
    c->state = PASSES;
    set_timer(c, 0);
    if ((early.len == 0 || wire_received(c->wire, span_of(&early))) && c->early_end)
        wire_ended(c->wire);
}

/* What belongs to the one request; what is behind it is not heard. */
static void pass_body(struct outlet_client *c, struct span data)
{
    long n = outlet_request_body(&c->request, data);
    if (n < 0) {
        mux_abort(c->stream, "that is no body of a request");
        return;
    }
    mux_consumed(c->stream, data.n - (size_t)n);
    if ((n == 0 || wire_received(c->wire, (struct span){data.s, (size_t)n})) && c->early_end)
        wire_ended(c->wire);
}

static void pass_request(struct outlet_client *c)
{
    struct buf early BUF_AUTO = c->early;
    c->early = (struct buf)BUF_INIT;
    c->state = SENDS_BODY;
    set_timer(c, 0);
    wire_say(c->wire, span_of(&c->request.head));
    pass_body(c, span_of(&early));
}

/* Takes what was read of c->early. */
static void taken(struct outlet_client *c, size_t n)
{
    buf_consume(&c->early, n);
    mux_consumed(c->stream, n);
}

/* ---- what a tunnel begins with ---- */

static void refuse_tls(struct outlet_client *c, const char *why)
{
    static const char unrecognized_name[] = "\25\3\1\0\2\2\160";
    note(c, "refused", NULL, why);
    end_with(c, (struct span){unrecognized_name, sizeof unrecognized_name - 1});
}

static void check_tls(struct outlet_client *c)
{
    struct outlet_hello hello;
    struct in6_addr address;
    const char *host = c->request.host;
    int is = outlet_hello_read(span_of(&c->early), &hello);
    bool has_name = strchr(host, ':') == NULL && inet_pton(AF_INET, host, &address) != 1;
    if (is == 0 && !c->early_end)
        return;
    if (is <= 0) {
        refuse_tls(c, "what was said first is no ClientHello of TLS");
    } else if (strcmp(hello.name, has_name || hello.name[0] ? host : "") != 0) {
        char *why MEM_AUTO = mem_printf("TLS asks for %s%s", hello.name[0] ? "" : "no name", hello.name);
        refuse_tls(c, why);
    } else {
        if (hello.encrypted)
            note(c, "allowed", NULL,
                 "beside its name there is an encrypted one (ECH), or a stand-in for one");
        pass(c);
    }
}

static void check_http(struct outlet_client *c)
{
    struct buf answer BUF_AUTO = BUF_INIT;
    const char *why;
    long n = outlet_request_read(&c->request, span_of(&c->early), &answer, &why);
    if (n > 0) {
        taken(c, (size_t)n);
        pass_request(c);
    } else if (n < 0) {
        note(c, "refused", NULL, why);
        end_with(c, span_of(&answer));
    } else if (c->early_end) {
        mux_abort(c->stream, "the request lacks its end");
    }
}

static void check(struct outlet_client *c)
{
    int first = c->early.len > 0 ? c->early.data[0] : -1;
    if (first == TLS_FIRST || (first != -1 && c->request.port == TLS_PORT))
        check_tls(c);
    else if (first != -1 && c->request.port == HTTP_PORT)
        check_http(c);
    else if (first != -1 || c->early_end)
        pass(c);
}

/* ---- requests ---- */

static void connected(struct outlet_client *c, int fd)
{
    struct sockaddr_storage at = {0};
    socklen_t size = sizeof at;
    char address[INET6_ADDRSTRLEN] = "";
    struct buf answer BUF_AUTO = BUF_INIT;
    if (getpeername(fd, (struct sockaddr *)&at, &size) == 0)
        inet_ntop(at.ss_family,
                  at.ss_family == AF_INET ? (const void *)&((struct sockaddr_in *)&at)->sin_addr
                                          : &((struct sockaddr_in6 *)&at)->sin6_addr,
                  address, sizeof address);
    note(c, "allowed", address, NULL);
    outlet_answer(&c->request, 200, "", &answer);
    mux_send(c->stream, answer.data, answer.len);
    c->wire = wire_new(c->outlet->wires, c->stream, fd);
    c->state = CHECKED;
    if (c->request.how == OUTLET_HTTP) {
        pass_request(c);
    } else if (!c->outlet->rules) {
        pass(c);
    } else {
        set_timer(c, c->request.port == TLS_PORT || c->request.port == HTTP_PORT ? ASK_MS : 0);
        check(c);
    }
}

static void on_dialled(void *arg, int fd, const struct err *why);

static void begin_dial(struct outlet_client *c)
{
    const struct outlet_rules *rules = c->outlet->rules;
    const char *host = c->request.host;
    char *where MEM_AUTO = mem_printf(strchr(host, ':') ? "[%s]:%u" : "%s:%u", host, c->request.port);
    c->state = DIALS;
    dialling++;
    dial_host(c->outlet->wires->loop, where, rules ? outlet_reaches : NULL, rules, on_dialled, c);
}

static void begin_next(void)
{
    struct outlet_client *c = waiting;
    if (!c || dialling >= DIALLING_MAX)
        return;
    waiting = c->next;
    begin_dial(c);
}

static void wait_turn(struct outlet_client *c)
{
    struct outlet_client **last = &waiting;
    while (*last)
        last = &(*last)->next;
    *last = c;
    c->state = WAITS;
}

static void leave(const struct outlet_client *c)
{
    struct outlet_client **at = &waiting;
    while (*at && *at != c)
        at = &(*at)->next;
    if (*at)
        *at = c->next;
}

static void on_dialled(void *arg, int fd, const struct err *why)
{
    struct outlet_client *c = arg;
    void (*said)(void) = c->outlet->wires->said;
    dialling--;
    begin_next();
    if (!c->stream) {
        io_close(&fd);
        drop(c);
        return;
    }
    if (fd < 0)
        refuse(c, why->code == ERR_PARAMS ? 403 : 502, why->msg);
    else
        connected(c, fd);
    said();
}

static void decide(struct outlet_client *c)
{
    const struct outlet_rules *rules = c->outlet->rules;
    const char *host = c->request.host;
    if (rules && !outlet_names(rules, host, c->request.port)) {
        char *why MEM_AUTO = mem_printf(strchr(host, ':') ? "[%s]:%u is not among what --allow names"
                                                          : "%s:%u is not among what --allow names",
                                        host, c->request.port);
        refuse(c, 403, why);
        return;
    }
    set_timer(c, 0);
    if (dialling >= DIALLING_MAX)
        wait_turn(c);
    else
        begin_dial(c);
}

static void ask(struct outlet_client *c)
{
    struct buf answer BUF_AUTO = BUF_INIT;
    const char *why;
    long n;
    while ((n = outlet_request_read(&c->request, span_of(&c->early), &answer, &why)) > 0 && !c->request.whole)
        taken(c, (size_t)n);
    if (n < 0) {
        note(c, "refused", NULL, why);
        end_with(c, span_of(&answer));
        return;
    }
    mux_send(c->stream, answer.data, answer.len);
    if (n > 0) {
        taken(c, (size_t)n);
        decide(c);
    }
}

/* ---- the stream ---- */

struct outlet_client *outlet_client_new(const struct outlet *outlet, struct mux_stream *s)
{
    struct outlet_client *c = mem_zalloc(sizeof *c);
    *c = (struct outlet_client){.outlet = outlet, .stream = s, .state = ASKS, .early = BUF_INIT};
    outlet_request_init(&c->request);
    set_timer(c, ASK_MS);
    return c;
}

void outlet_received(struct outlet_client *c, struct span data)
{
    if (c->state == REFUSED) {
        mux_consumed(c->stream, data.n);
    } else if (c->state == PASSES) {
        wire_received(c->wire, data);
    } else if (c->state == SENDS_BODY) {
        pass_body(c, data);
    } else {
        buf_add(&c->early, data.s, data.n);
        if (c->state == ASKS)
            ask(c);
        else if (c->state == CHECKED)
            check(c);
    }
}

void outlet_ended(struct outlet_client *c)
{
    c->early_end = true;
    if (c->state == ASKS)
        mux_abort(c->stream, "the request lacks its end");
    else if (c->state == CHECKED)
        check(c);
    else if (c->state == SENDS_BODY || c->state == PASSES)
        wire_ended(c->wire);
}

void outlet_wait(struct outlet_client *c)
{
    if (c->wire)
        wire_wait(c->wire);
}

void outlet_closed(struct outlet_client *c, bool whole)
{
    loop_drop(&c->timer);
    c->stream = NULL;
    if (c->state == DIALS)
        return; /* on_dialled ends it */
    if (c->state == WAITS)
        leave(c);
    if (c->wire)
        wire_free(c->wire, whole);
    drop(c);
}
