#include "exec.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "chunk.h"
#include "io.h"
#include "route.h"
#include "title.h"

#define REQUEST_MAX (128u << 20)

/* By one of the names of the tool servers that this one stands in for. */
static bool called_as_inspect(void)
{
    return strcmp(title_program(), "inspect-sandbox-tools") == 0 ||
           strcmp(title_program(), "inspect-tool-support") == 0;
}

/* *told: what was printed is the answer, or its first piece. */
static int print_line(struct answer *a, bool whole, bool *told)
{
    struct err err;
    /* The hosts of the inspect-* names that know of pieces set the variable; for the others there is no
     * limit. */
    *told = whole || chunk_wrap(&a->line, a->id, chunk_limit(called_as_inspect() ? 0 : CHUNK_LIMIT_DEFAULT),
                                &err) == 0;
    if (!*told)
        fprintf(stderr, "toolbox exec: %s\n", err.msg);
    buf_addc(&a->line, '\n');
    if (io_write_all(STDOUT_FILENO, a->line.data, a->line.len) < 0)
        return applet_failed("exec", "cannot write the answer: %s", err_text(errno));
    return EXIT_OK;
}

static int serve(struct span request, bool whole)
{
    struct answer a = ANSWER_INIT;
    struct err err;
    int result = EXIT_OK;
    bool told = true;
    if (route(&a, request, &err) < 0)
        result = applet_failed("exec", "%s", err.msg);
    else if (a.line.len > 0)
        result = print_line(&a, whole, &told);
    route_end(&a, result == EXIT_OK && told); /* else whoever answered has it still */
    return result;
}

static int exec_main(int argc, char **argv)
{
    struct buf request BUF_AUTO = {.max = REQUEST_MAX};
    bool whole = argc > 1 && strcmp(argv[1], "--whole") == 0;
    argc -= whole;
    argv += whole;
    if (argc > 2)
        return usage_error("exec", "one request at most, not %d arguments", argc - 1);
    if (argc == 2 && argv[1][0] == '-')
        return usage_unknown("exec", "option", argv[1], NULL);
    signal(SIGPIPE, SIG_IGN); /* a reader that has gone is an error to report, not the end of us */
    if (argc == 2)
        return serve((struct span){argv[1], strlen(argv[1])}, whole);
    if (io_read_all(STDIN_FILENO, &request) == 0)
        return serve(span_of(&request), whole);
    if (errno != EFBIG)
        return applet_failed("exec", "cannot read the request: %s", err_text(errno));
    return applet_failed("exec", "the request is longer than %u MiB", REQUEST_MAX >> 20);
}

const struct applet exec_applet = {
    .name = "exec",
    .summary = "answer one JSON-RPC request",
    .usage = "Usage: toolbox exec [--whole] [REQUEST]\n"
             "\n"
             "Takes one JSON-RPC 2.0 request from stdin (or as the only argument) and prints\n"
             "the answer as one line of JSON:\n"
             "\n"
             "  echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"version\"}' | toolbox exec\n"
             "\n"
             "Starts the server where a method needs it and none runs. An answer longer than\n"
             "$INSPECT_SANDBOX_JSON_RPC_RESPONSE_MAX_BYTES (65536) comes in pieces;\n"
             "docs/protocol.md says how, and lists all methods; with --whole it is one line.\n"
             "A request as an argument can be read by others of the machine in its process\n"
             "list.\n"
             "\n"
             "Exit status: 0 an answer was printed (an error is an answer) or the request was\n"
             "a notification, 1 no answer could be had, 2 usage.\n",
    .run = exec_main,
};
