#include "exec.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "caller.h"
#include "chunk.h"
#include "exec_stream.h"
#include "io.h"
#include "json.h"
#include "relocate.h"
#include "route.h"
#include "rpc.h"
#include "title.h"
#include "words.h"

/* *told: what was printed is the answer, or its first piece. */
static int print_line(struct answer *a, bool whole, bool *told)
{
    struct err err;
    /* The hosts of the inspect-* names that know of pieces set the variable; for the others there is no
     * limit. */
    *told = whole ||
            chunk_wrap(&a->line, a->id, chunk_limit(title_is_inspect() ? 0 : CHUNK_LIMIT_DEFAULT), &err) == 0;
    if (!*told)
        fprintf(stderr, "toolbox exec: %s\n", err.msg);
    buf_addc(&a->line, '\n');
    if (io_write_all(STDOUT_FILENO, a->line.data, a->line.len) < 0)
        return applet_failed("exec", "cannot write the answer: %s", err_text(errno));
    return EXIT_OK;
}

static int serve(struct span request, bool whole)
{
    static char program[] = "toolbox", command[] = "exec", whole_option[] = "--whole";
    char *const hand_over[] = {title_is_inspect() ? (char *)title_program() : program, command,
                               whole ? whole_option : NULL, NULL};
    struct answer a = ANSWER_INIT;
    struct err err;
    a.hand_over = hand_over;
    int result = EXIT_OK;
    bool told = true;
    if (route(&a, request, &err) < 0)
        result = applet_failed("exec", "%s", err.msg);
    else if (a.line.len > 0)
        result = print_line(&a, whole, &told);
    /* else whoever answered has it still */
    route_end(&a, result == EXIT_OK && told && (a.line.len == 0 || caller_confirmed()));
    return result;
}

static bool is_method(const char *word)
{
    size_t n = strspn(word, "abcdefghijklmnopqrstuvwxyz_/");
    return n > 0 && word[n] == '\0' && json_check((struct span){word, n}, NULL) < 0; /* true is JSON */
}

/* From stdin, a file, an argument, or the words METHOD [PARAM]... */
static int read_request(char *const *words, int n, struct buf *request)
{
    struct buf params BUF_AUTO = BUF_INIT;
    if (n == 0 || (n == 1 && *words[0] == '@'))
        return words_file("exec", n == 0 ? "-" : words[0] + 1, request);
    if (n == 1 && !is_method(words[0]))
        return words_text("exec", words[0], request);
    if (!is_method(words[0]))
        return usage_error("exec", "one request at most, or a method and its params, not %d arguments", n);
    int status = words_params("exec", words + 1, n - 1, &params);
    rpc_put_request(request, (struct span){"1", 1}, words[0], span_of(&params));
    return status;
}

static int exec_main(int argc, char **argv)
{
    struct buf request BUF_AUTO = BUF_INIT;
    static const char *const options[] = {"--whole", "--detect", "--stream", NULL};
    bool given[3] = {false};
    for (; argc > 1 && argv[1][0] == '-' && argv[1][1]; argc--, argv++) {
        int i = 0;
        while (options[i] && strcmp(argv[1], options[i]) != 0)
            i++;
        if (!options[i])
            return usage_unknown("exec", "option", argv[1], options);
        given[i] = true;
    }
    bool whole = given[0], detect = given[1];
    if (given[2] && (whole || detect || argc > 1))
        return usage_error("exec", "--stream goes alone: requests come on stdin");
    signal(SIGPIPE, SIG_IGN); /* a reader that has gone is an error to report, not the end of us */
    if (given[2]) {
        relocate_rest();
        return exec_stream();
    }
    bool from_stdin = argc == 1 || (argc == 2 && strcmp(argv[1], "-") == 0);
    caller_watch();
    int status = detect && from_stdin ? EXIT_OK : read_request(argv + 1, argc - 1, &request);
    if (status == EXIT_OK && detect && caller_detect(from_stdin, &request) < 0)
        status =
            applet_failed("exec", "cannot read stdin: %s",
                          errno == EFBIG ? "the request is longer than 128 MiB or a tenth of the free memory"
                                         : err_text(errno));
    return status == EXIT_OK ? serve(span_of(&request), whole) : status;
}

const struct applet exec_applet = {
    .name = "exec",
    .summary = "answer one JSON-RPC request",
    .run = exec_main,
};
