/* One RPC call in a target, from outside. Where the target is ready, finding that out and the call are one
 * call of the runtime. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client.h"
#include "inject/inject.h"
#include "inject/inject_one.h"
#include "inject/inject_report.h"
#include "io.h"
#include "rpc.h"
#include "tool.h"
#include "words.h"

static const char NAME[] = "call";

extern const struct applet call_applet;

/* The program is there by now. */
static int call_again(const struct target *t, const struct inject_result *r, struct transport *transport,
                      struct span request, struct buf *answer, struct err *err)
{
    const char *const arguments[] = {"exec", "--whole", NULL};
    struct transport_call c TRANSPORT_CALL_AUTO = TRANSPORT_CALL_INIT;
    struct argv command ARGV_AUTO = {0};
    struct buf said BUF_AUTO = BUF_INIT;
    c.input[0] = request;
    c.out_max = INJECT_ANSWER_MAX;
    if (inject_command(t, r, arguments, &command, err) < 0 ||
        transport_run(transport, command.words, &c, err) != TRANSPORT_ENDED)
        return -1;
    transport_said(&c, &said);
    if (c.status != 0)
        return err_set(err, ERR_TOOL, "no answer (exit status %d): %s", c.status, buf_str(&said));
    return buf_add(answer, buf_str(&c.out), c.out.len);
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

static int print_answer(struct buf *answer, const char *method, bool whole)
{
    struct err err;
    struct span result, text;
    while (answer->len > 0 && strchr(" \r\n", answer->data[answer->len - 1]))
        buf_truncate(answer, answer->len - 1);
    if (json_check(span_of(answer), &err) < 0)
        return applet_failed(NAME, "the answer is not JSON: %s", err.msg);
    text = span_of(answer);
    if (!whole && client_result(text, &result, &err) < 0) {
        struct buf shown BUF_AUTO = BUF_INIT;
        transport_show(&shown, err.msg, strlen(err.msg), ERR_MSG_MAX); /* somebody else's words */
        if (err.code == ERR_METHOD_NOT_FOUND)
            add_hint(&shown, method);
        return applet_failed(NAME, "%s", buf_str(&shown));
    }
    if (!whole)
        text = result;
    struct buf line BUF_AUTO = BUF_INIT;
    json_put_shown(&line, text);
    buf_addc(&line, '\n');
    if (io_write_all(STDOUT_FILENO, line.data, line.len) < 0)
        return applet_failed(NAME, "cannot write: %s", err_text(errno));
    return EXIT_OK;
}

static int call(const struct inject_options *o, const struct target *t, struct transport *transport,
                const char *method, struct span request)
{
    struct buf answer BUF_AUTO = BUF_INIT;
    struct inject_result r;
    struct err err;
    int status;
    inject_result_init(&r, t->text);
    if (inject_one(o, t, transport, &r, request, &answer) < 0) {
        struct buf out BUF_AUTO = BUF_INIT;
        report_text(&r, NAME, &out);
        fputs(out.data, stderr);
        status = r.exit;
    } else if (answer.len == 0 && call_again(t, &r, transport, request, &answer, &err) < 0) {
        status = applet_failed(NAME, "%s: %s", t->text, err.msg);
    } else {
        status = print_answer(&answer, method, o->json);
    }
    inject_result_release(&r);
    return status;
}

static int call_main(int argc, char **argv)
{
    static const struct option options[] = {INJECT_OPTIONS, {"json", 0, NULL, OPT_JSON}, {0}};
    struct inject_options o;
    struct transport transport;
    struct target t TARGET_AUTO = {0};
    struct buf params BUF_AUTO = BUF_INIT;
    struct buf request BUF_AUTO = BUF_INIT;
    struct err err;
    inject_options_init(&o);
    opterr = 0;
    for (int option, at; (at = optind, option = getopt_long(argc, argv, ":", options, NULL)) >= 0;)
        if (inject_option(&o, option, optarg, NAME, argv[at]) != EXIT_OK)
            return EXIT_USAGE;
    if (argc - optind < 2)
        return usage_error(NAME, "a target and a method are wanted, and perhaps params");
    if (inject_running_target(&t, argv[optind], &o, NAME) != EXIT_OK)
        return EXIT_USAGE;
    int status = words_params(NAME, argv + optind + 2, argc - optind - 2, &params);
    if (status != EXIT_OK)
        return status;
    if (transport_init(&transport, o.timeout_ms, &err) < 0)
        return applet_failed(NAME, "%s", err.msg);
    rpc_put_request(&request, (struct span){"1", 1}, argv[optind + 1], span_of(&params));
    status = call(&o, &t, &transport, argv[optind + 1], span_of(&request));
    transport_release(&transport);
    return status;
}

const struct applet call_applet = {
    .name = "call",
    .summary = "make one RPC call in a target, from outside",
    .usage = "Usage: toolbox call [OPTION]... TARGET METHOD [PARAM]...\n"
             "\n"
             "Prints the result as one line of JSON.\n"
             "\n"
             "  toolbox call docker:web bash_session_new_session\n"
             "  toolbox call docker:web text_editor command=view path=/etc\n"
             "  toolbox call docker:web text_editor '{\"command\":\"view\",\"path\":\"/etc\"}'\n"
             "  toolbox call k8s:prod/api-0 exec_remote_start - <params.json\n"
             "\n" WORDS_PARAMS_USAGE "\n" INJECT_RUNNING_USAGE "\n" INJECT_OPTIONS_USAGE
             "  --json           print the whole answer, be it a result or an error\n"
             "  --help           this text\n"
             "\n"
             "Exit status: 0 a result (with --json any answer), 1 an error (its message is on\n"
             "stderr), 2 usage, and those of 'toolbox inject'. --timeout also bounds the call.\n",
    .run = call_main,
};
