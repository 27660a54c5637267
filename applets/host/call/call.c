/* One RPC call in a target, from outside. Where the target is ready, finding that out and the call are one
 * call of the runtime. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "host/call/call_unanswered.h"
#include "client.h"
#include "host/connect/connect.h"
#include "host/inject/connection.h"
#include "host/inject/inject.h"
#include "host/inject/inject_one.h"
#include "host/inject/inject_report.h"
#include "io.h"
#include "rpc.h"
#include "tool.h"
#include "words.h"

static const char NAME[] = "call";
#define IMPATIENT_MS 700 /* a beat has come by then, where output is passed on as it comes */

extern const struct applet call_applet;

/* What was asked for, and how it went. */
struct asked {
    struct inject_request request;
    const char *method;
    struct span params;
    bool whole; /* the answer is wanted as it is */
    int status;
};

enum { OPT_PERSIST = 512, OPT_NO_SHARE };

/* The command line. */
struct line {
    struct inject_options o;
    int persist_ms; /* of a connection that is to be kept; CONNECT_USUAL */
    bool alone;     /* none is used */
};

static enum transport_step answered(void *arg, struct transport_call *c)
{
    return inject_request_step(arg, 0, c);
}

/* The program is there by now. */
static int call_ready(const struct target *t, const struct inject_result *r, struct transport *transport,
                      struct inject_request *q)
{
    const char *const arguments[] = {"exec", "--whole", "--detect", NULL};
    struct transport_call c TRANSPORT_CALL_AUTO = TRANSPORT_CALL_INIT;
    struct argv command ARGV_AUTO = {0};
    struct err err;
    if (inject_command(t, r, arguments, &command, &err) < 0)
        return applet_failed(NAME, "%s: %s", t->text, err.msg);
    inject_request_send(q, t->kind->program && !q->withheld, &c, 0);
    c.out_max = INJECT_ANSWER_MAX;
    c.answered = answered;
    c.answered_arg = q;
    c.impatient_ms = IMPATIENT_MS;
    inject_request_end(q, transport_run(transport, command.words, &c, &err), &c);
    return EXIT_OK;
}

/* How what was wrong with a parameter is put right on a command line. */
static void add_params_hint(struct buf *text, const char *method, const char *said)
{
    const char *kind = strstr(said, "must be ");
    if (strstr(said, "is no parameter"))
        buf_addf(text, "; 'toolbox methods %s' lists what there is", method);
    else if (kind && !strstr(kind, "a string") && !strstr(kind, "between") && !strstr(kind, "at least"))
        buf_adds(text, "; what is no string is given as NAME:=VALUE");
}

/* What may have been meant by a method that there isn't. */
static void add_hint(struct buf *text, const char *method)
{
    const char *names[METHODS_MAX];
    tool_method_names(names, METHODS_MAX);
    const char *near = usage_closest(method, names);
    if (near) {
        buf_addf(text, "; did you mean '%s'?", near);
        return;
    }
    buf_adds(text, "; the methods are");
    for (const char **name = names; *name; name++)
        buf_addf(text, "%s %s", name == names ? "" : ",", *name);
}

static int print_answer(struct span text, const char *method, bool whole)
{
    struct err err;
    struct span result;
    if (!whole && client_result(text, &result, &err) < 0) {
        struct buf shown BUF_AUTO = BUF_INIT;
        transport_show(&shown, err.msg, strlen(err.msg), ERR_MSG_MAX); /* somebody else's words */
        if (err.code == ERR_METHOD_NOT_FOUND)
            add_hint(&shown, method);
        else if (err.code == ERR_PARAMS)
            add_params_hint(&shown, method, err.msg);
        return applet_failed(NAME, "%s", buf_str(&shown));
    }
    if (!whole)
        text = result;
    struct buf line BUF_AUTO = BUF_INIT;
    json_put_shown(&line, text);
    buf_addc(&line, '\n');
    if (io_write_all(STDOUT_FILENO, line.data, line.len) == 0)
        return EXIT_OK;
    applet_failed(NAME, "cannot write: %s", err_text(errno));
    return EXIT_LOST;
}

/* Prints the answer as it comes: only then does the other side forget it. */
static bool deliver(void *arg, struct span line)
{
    struct asked *a = arg;
    a->status = print_answer(line, a->method, a->whole);
    return a->status != EXIT_LOST;
}

static int call(const struct line *l, const struct target *t, struct transport *transport, struct asked *a)
{
    const struct inject_options *o = &l->o;
    struct inject_result r;
    inject_result_init(&r, t->text);
    int ready = inject_one(o, t, transport, &r, &a->request);
    int status = r.failure.exit;
    if (ready == 0 && !a->request.sent)
        status = call_ready(t, &r, transport, &a->request);
    if (a->request.answered) {
        status = a->status;
    } else if (a->request.sent) {
        status = call_unanswered(o, t, a->method, a->params, &a->request);
    } else if (ready < 0) {
        struct buf out BUF_AUTO = BUF_INIT;
        report_text(&r, NAME, &out);
        fputs(out.data, stderr);
    }
    if (transport->interrupted)
        status = EXIT_BY_SIGNAL + transport->interrupted;
    else if (a->request.answered && l->persist_ms == CONNECT_USUAL && (ready = connect_usual_ms(t)) >= 0)
        connect_behind(NAME, o, t, &r, ready); /* the next one is a fast one */
    inject_result_release(&r);
    return status;
}

/* Over a connection that is kept, where there is one, or is to be. False: in the usual way. */
static bool call_over_connection(const struct line *l, const struct target *t, struct asked *a, int *status)
{
    int fd = l->alone || l->persist_ms >= 0 ? -1 : connection_open(&l->o, t);
    if (fd < 0 && l->persist_ms >= 0) {
        *status = connect_start(NAME, &l->o, t, l->persist_ms);
        if (*status != EXIT_OK)
            return true;
        fd = connection_open(&l->o, t);
    }
    if (fd < 0 || !connection_request(fd, &a->request, l->o.timeout_ms))
        return false;
    *status = a->request.answered ? a->status : call_unanswered(&l->o, t, a->method, a->params, &a->request);
    return true;
}

static int call_by_itself(const struct line *l, const struct target *t, struct asked *a)
{
    struct transport transport;
    struct err err;
    if (transport_init(&transport, l->o.timeout_ms, &err) < 0)
        return applet_failed(NAME, "%s", err.msg);
    int status = call(l, t, &transport, a);
    transport_release(&transport);
    return status;
}

static int parse(struct line *l, int argc, char **argv)
{
    static const struct option options[] = {INJECT_OPTIONS,
                                            {"json", 0, NULL, OPT_JSON},
                                            {"persist", 2, NULL, OPT_PERSIST},
                                            {"no-share", 0, NULL, OPT_NO_SHARE},
                                            {0}};
    inject_options_init(&l->o);
    opterr = 0;
    for (int option, at; (at = optind, option = getopt_long(argc, argv, ":", options, NULL)) >= 0;) {
        int status = EXIT_OK;
        if (option == OPT_PERSIST)
            status = connect_persist(NAME, optarg ? optarg : "60", &l->persist_ms);
        else if (option == OPT_NO_SHARE)
            l->alone = true;
        else
            status = inject_option(&l->o, options, option, NAME, argv[at]);
        if (status != EXIT_OK)
            return status;
    }
    if (l->alone && l->persist_ms >= 0)
        return usage_error(NAME, "--persist and --no-share don't go together");
    if (l->alone)
        l->persist_ms = -1;
    if (argc - optind < 2)
        return usage_error(NAME, "a target and a method are wanted, and perhaps params");
    return EXIT_OK;
}

static int call_main(int argc, char **argv)
{
    struct line l = {.persist_ms = CONNECT_USUAL};
    struct target t TARGET_AUTO = {0};
    struct buf params BUF_AUTO = BUF_INIT;
    struct buf request BUF_AUTO = BUF_INIT;
    int status = parse(&l, argc, argv);
    if (status != EXIT_OK)
        return status;
    if (inject_running_target(&t, argv[optind], &l.o, NAME) != EXIT_OK)
        return EXIT_USAGE;
    status = words_params(NAME, argv + optind + 2, argc - optind - 2, &params);
    if (status != EXIT_OK)
        return status;
    rpc_put_request(&request, (struct span){"1", 1}, argv[optind + 1], span_of(&params));
    buf_addc(&request, '\n');
    struct asked asked = {
        .request = {.text = span_of(&request), .deliver = deliver, .deliver_arg = &asked, .said = BUF_INIT},
        .method = argv[optind + 1],
        .params = span_of(&params),
        .whole = l.o.json};
    if (!call_over_connection(&l, &t, &asked, &status))
        status = call_by_itself(&l, &t, &asked);
    buf_release(&asked.request.said);
    return status;
}

const struct applet call_applet = {
    .name = "call",
    .summary = "make one RPC call in a target, from outside",
    .run = call_main,
};
