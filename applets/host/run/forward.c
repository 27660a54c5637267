/* Connections from here into a target, and from there to here, over one stream. */
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "commands/exec/dial.h"
#include "commands/exec/wire.h"
#include "host/inject/inject.h"
#include "host/outlet/outlet.h"
#include "host/run/run.h"
#include "io.h"
#include "json.h"
#include "mem.h"
#include "relocate.h"

static const char NAME[] = "forward";

enum { RULES_MAX = 32 };

/* One FROM:TO. */
struct rule {
    bool reverse;    /* from there to here */
    bool listened;   /* there, by now */
    char *from, *to; /* to NULL: where each asks to be led */
    int fd;          /* that listens here; -1: none */
    struct loop_source *source;
    struct mux_stream *listens; /* there */
    struct buf numbers;         /* that it has said, not whole */
};

/* A connection. */
struct flow {
    struct mux_stream *stream;
    struct wire *wire;
    struct outlet_client *client; /* in place of a wire; NULL: none */
    uint32_t number;              /* of one that waits there, until ours is made */
};

static struct {
    struct link_options how;
    struct rule rules[RULES_MAX];
    size_t n;
    struct outlet outlet;
    struct outlet_rules allowed;
    struct loop *loop;
    struct link *link;
    int status;
} my;

/* ---- rules ---- */

/* The words between colons, a path or an address in brackets as one. */
static size_t split(char *text, char *words[5])
{
    size_t n = 0;
    for (char *at = text; at && n < 5;) {
        char *from = *at == '[' && strchr(at, ']') ? strchr(at, ']') : at;
        char *end = strchr(from, ':');
        words[n++] = at;
        if (end)
            *end++ = '\0';
        at = end;
    }
    return n;
}

static char *join(const char *host, const char *port)
{
    return mem_printf("%s:%s", host, port);
}

/* PORT or a path is one word, HOST:PORT two: of three in all the first two, where the first is no port. */
static bool take_rule(struct rule *r, char *words[5], size_t n)
{
    bool path_last = n > 0 && words[n - 1][0] == '/';
    bool host_first = n == 3 && (path_last || words[0][strspn(words[0], "0123456789")]);
    size_t first = n > 0 && words[0][0] == '/' ? 1 : n == 4 || host_first ? 2 : 1;
    for (size_t i = 0; i < n; i++)
        if (!*words[i])
            return false;
    if (n < 2 || n - first < 1 || n - first > 2 || (path_last && n - first != 1))
        return false;
    r->from = first == 2 ? join(words[0], words[1]) : mem_strdup(words[0]);
    r->to = n - first == 2 ? join(words[first], words[first + 1]) : mem_strdup(words[first]);
    return true;
}

/* Where each who comes says himself what he is to be connected with. */
static int add_outlet(const char *from)
{
    const char *colon = strrchr(from, ':'), *port = colon ? colon + 1 : from;
    if (my.n == RULES_MAX)
        return usage_error(NAME, "there may be %d of them", RULES_MAX);
    if (from[0] != '/' && !outlet_port(port, strlen(port)))
        return usage_error(NAME, "'%s' is no [ADDRESS:]PORT, and no path", from);
    my.rules[my.n++] =
        (struct rule){.reverse = true, .from = mem_strdup(from), .fd = -1, .numbers = BUF_INIT};
    return EXIT_OK;
}

static int add_rule(const char *text, bool reverse)
{
    if (reverse && !strchr(text, ':'))
        return add_outlet(text);
    char *copy MEM_AUTO = mem_strdup(text), *words[5];
    if (my.n == RULES_MAX)
        return usage_error(NAME, "there may be %d of them", RULES_MAX);
    struct rule *r = &my.rules[my.n];
    *r = (struct rule){.reverse = reverse, .fd = -1, .numbers = BUF_INIT};
    if (!take_rule(r, words, split(copy, words)))
        return usage_error(NAME, "'%s' is no [ADDRESS:]PORT:[HOST:]PORT; each side may be a path", text);
    my.n++;
    return EXIT_OK;
}

static int allow(const char *words)
{
    struct err err;
    my.outlet.rules = &my.allowed;
    return outlet_rules_add(&my.allowed, words, &err) < 0 ? usage_error(NAME, "--allow: %s", err.msg)
                                                          : EXIT_OK;
}

static const struct rule *outlet_rule(void)
{
    for (size_t i = 0; i < my.n; i++)
        if (!my.rules[i].to)
            return &my.rules[i];
    return NULL;
}

/* For the shell of a session there. */
static int print_env(void)
{
    static const char *const names[] = {"HTTP_PROXY",  "http_proxy", "HTTPS_PROXY",
                                        "https_proxy", "ALL_PROXY",  "all_proxy"};
    const struct rule *r = outlet_rule();
    if (!r || r->from[0] == '/')
        return usage_error(NAME, "--print-env is about a port: -D [ADDRESS:]PORT");
    const char *colon = strrchr(r->from, ':'), *port = colon ? colon + 1 : r->from;
    int n = colon ? (int)(colon - r->from) : 0;
    bool any = n == 0 || strncmp(r->from, "0.0.0.0:", 8) == 0 || strncmp(r->from, "[::]:", 5) == 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        printf("export %s=http://%.*s:%s\n", names[i], any ? 9 : n, any ? "127.0.0.1" : r->from, port);
    printf("export NO_PROXY=localhost,127.0.0.1,::1\nexport no_proxy=localhost,127.0.0.1,::1\n");
    return stdout_flushed();
}

/* Port 0 is any that is free: what it has become is said. */
static void name_port(struct rule *r)
{
    struct sockaddr_in6 at = {0}; /* an address of the older kind has its port at the same place */
    socklen_t n = sizeof at;
    const char *colon = strrchr(r->from, ':'), *port = colon ? colon + 1 : r->from;
    if (r->from[0] == '/' || strtol(port, NULL, 10) != 0 ||
        getsockname(r->fd, (struct sockaddr *)&at, &n) < 0)
        return;
    char *from = mem_printf("%.*s%u", (int)(port - r->from), r->from, ntohs(at.sin6_port));
    free(r->from);
    r->from = from;
}

static void say_ready(const struct rule *r)
{
    if (r->reverse)
        printf("%s %s -> %s\n", my.outlet.target, r->from,
               r->to             ? r->to
               : my.outlet.rules ? "what is allowed"
                                 : "anywhere");
    else
        printf("%s -> %s %s\n", r->from, my.outlet.target, r->to);
    fflush(stdout);
}

/* ---- connections ---- */

static size_t room(const struct mux_stream *s)
{
    return link_is_full(my.link) || s->sent_end ? 0 : s->room;
}

static void said(void)
{
    link_flush(my.link);
}

static struct wire_owner owner;

static struct mux_stream *open_to(const char *key, const char *where, long long number, void *work)
{
    struct buf text BUF_AUTO = BUF_INIT;
    buf_addf(&text, "{\"%s\":", key);
    if (where)
        json_puts(&text, where);
    else
        json_put_int(&text, number);
    buf_addc(&text, '}');
    return mux_open(link_mux(my.link), span_of(&text), work);
}

static void begin_flow(struct flow *f, struct mux_stream *s, int fd)
{
    f->stream = s;
    f->wire = wire_new(&owner, s, fd);
    said();
}

static void on_accept(void *arg, int events)
{
    struct rule *r = arg;
    (void)events;
    int fd = accept4(r->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return;
    struct flow *f = mem_zalloc(sizeof *f);
    begin_flow(f, open_to("connect", r->to, 0, f), fd);
}

/* Ours to one who waits there. */
static void on_dialled(void *arg, int fd, const struct err *why)
{
    struct flow *f = arg;
    if (!link_mux(my.link)) {
        io_close(&fd);
        free(f);
        return;
    }
    struct mux_stream *s = open_to("accept", NULL, f->number, f);
    if (fd >= 0) {
        begin_flow(f, s, fd);
        return;
    }
    applet_failed(NAME, "a connection from %s: %s", my.outlet.target, why->msg);
    mux_reset(s, why->msg);
    free(f);
    said();
}

static void take_number(struct rule *r, uint32_t number)
{
    if (number == 0) {
        r->listened = true;
        say_ready(r);
        return;
    }
    struct flow *f = mem_zalloc(sizeof *f);
    f->number = number;
    if (r->to) {
        dial(my.loop, r->to, on_dialled, f);
        return;
    }
    f->stream = open_to("accept", NULL, number, f);
    f->client = outlet_client_new(&my.outlet, f->stream);
    said();
}

/* ---- the streams ---- */

static struct rule *rule_of(const struct mux_stream *s)
{
    for (size_t i = 0; i < my.n; i++)
        if (my.rules[i].listens == s)
            return &my.rules[i];
    return NULL;
}

static void received(void *arg, struct mux_stream *s, struct span data)
{
    struct rule *r = rule_of(s);
    struct flow *f = s->work;
    (void)arg;
    if (!r && f->client)
        outlet_received(f->client, data);
    else if (!r)
        wire_received(f->wire, data);
    if (!r)
        return;
    buf_add(&r->numbers, data.s, data.n);
    mux_consumed(s, data.n);
    size_t at = 0;
    for (; r->numbers.len - at >= 4; at += 4)
        take_number(r, mux_number(r->numbers.data + at));
    buf_consume(&r->numbers, at);
}

static void ended(void *arg, struct mux_stream *s)
{
    struct flow *f = s->work;
    (void)arg;
    if (!rule_of(s) && f->client)
        outlet_ended(f->client);
    else if (!rule_of(s))
        wire_ended(f->wire);
}

static void has_room(void *arg, struct mux_stream *s)
{
    struct flow *f = s->work;
    (void)arg;
    if (!rule_of(s) && f->client)
        outlet_wait(f->client);
    else if (!rule_of(s))
        wire_wait(f->wire);
}

static void stop(int status)
{
    my.status = status;
    loop_stop(my.loop, 0);
}

static void closed(void *arg, struct mux_stream *s, struct span why)
{
    struct rule *r = rule_of(s);
    struct flow *f = s->work;
    (void)arg;
    if (r) {
        r->listens = NULL;
        if (my.status < 0)
            applet_failed(NAME, "%s: %.*s", my.outlet.target, (int)why.n, why.s);
        stop(my.status >= 0 ? my.status : r->listened ? EXIT_LOST : EXIT_FAILED);
        return;
    }
    if (f->client)
        outlet_closed(f->client, !why.s);
    else
        wire_free(f->wire, !why.s);
    free(f);
}

static void link_ended(void *arg, const char *why)
{
    (void)arg;
    if (my.status < 0)
        applet_failed(NAME, "%s: %s", my.outlet.target, why);
    stop(my.status < 0 ? EXIT_LOST : my.status);
}

/* ---- life ---- */

static void on_signal(void *arg, int number)
{
    (void)arg;
    stop(EXIT_BY_SIGNAL + number);
}

/* What has room again, now that something was sent. */
static void on_flushed(void *arg)
{
    (void)arg;
    for (struct mux_stream *s = mux_streams(link_mux(my.link)), *next; s; s = next) {
        next = s->next;
        has_room(NULL, s);
    }
}

static int begin_rules(struct err *err)
{
    for (size_t i = 0; i < my.n; i++) {
        struct rule *r = &my.rules[i];
        if (r->reverse) {
            r->listens = open_to("listen", r->from, 0, NULL);
            continue;
        }
        r->fd = dial_listen(r->from, err);
        if (r->fd < 0)
            return -1;
        name_port(r);
        r->source = loop_fd(my.loop, r->fd, LOOP_READ, on_accept, r);
        say_ready(r);
    }
    return 0;
}

static void end_rules(void)
{
    for (size_t i = 0; i < my.n; i++) {
        struct rule *r = &my.rules[i];
        if (r->fd >= 0 && r->from[0] == '/')
            unlink(r->from);
        io_close(&r->fd);
        free(r->from);
        free(r->to);
        buf_release(&r->numbers);
    }
}

static int forward(const struct target *t)
{
    static const struct mux_owner streams = {
        .received = received, .ended = ended, .has_room = has_room, .closed = closed};
    struct link_owner links = {.streams = streams, .ended = link_ended, .flushed = on_flushed};
    struct err err;
    int status;
    my.outlet.target = t->text;
    my.status = -1;
    my.link = link_open(NAME, &my.how, t, &status);
    if (!my.link)
        return status;
    my.loop = loop_new(&err);
    if (!my.loop)
        return applet_failed(NAME, "%s", err.msg);
    owner = (struct wire_owner){my.loop, room, said};
    my.outlet.wires = &owner;
    link_begin(my.link, my.loop, &links);
    loop_on_signal(my.loop, on_signal, NULL);
    if (begin_rules(&err) < 0) {
        my.status = applet_failed(NAME, "%s", err.msg);
    } else {
        said();
        loop_run(my.loop);
    }
    end_rules();
    outlet_rules_release(&my.allowed);
    link_close(my.link);
    return my.status;
}

static int forward_main(int argc, char **argv)
{
    enum { ALLOW = 800, PRINT_ENV };
    static const struct option options[] = {
        INJECT_OPTIONS, LINK_OPTIONS, {"allow", 1, NULL, ALLOW}, {"print-env", 0, NULL, PRINT_ENV}, {0}};
    bool prints = false;
    struct target t TARGET_AUTO = {0};
    struct err err;
    if (code_unpack(CODE_outlet, &err) < 0)
        return applet_failed(NAME, "%s", err.msg);
    my.how = (struct link_options){.persist_ms = -1};
    inject_options_init(&my.how.inject);
    opterr = 0;
    for (int option, at; (at = optind, option = getopt_long(argc, argv, ":D:R:", options, NULL)) >= 0;) {
        int status = option == 'R'         ? add_rule(optarg, true)
                     : option == 'D'       ? add_outlet(optarg)
                     : option == ALLOW     ? allow(optarg)
                     : option == PRINT_ENV ? EXIT_OK
                                           : link_option(&my.how, options, option, NAME, argv[at]);
        prints |= option == PRINT_ENV;
        if (status != EXIT_OK)
            return status;
    }
    if (prints)
        return print_env();
    for (int i = optind + 1; i < argc; i++)
        if (add_rule(argv[i], false) != EXIT_OK)
            return EXIT_USAGE;
    if (optind >= argc || my.n == 0)
        return usage_error(NAME, "a target is wanted, and what to forward: docker:NAME 8080:80");
    if (my.outlet.rules && !outlet_rule())
        return usage_error(NAME, "--allow says what is let through at -D [ADDRESS:]PORT, which is missing");
    if (inject_running_target(&t, argv[optind], &my.how.inject, NAME) != EXIT_OK)
        return EXIT_USAGE;
    return forward(&t);
}

const struct applet forward_applet = {
    .name = "forward",
    .summary = "connections into a target, and out of it to here",
    .run = forward_main,
};
