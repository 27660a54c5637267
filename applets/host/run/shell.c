/* A person's shell in a target: a session that can be left and come back to. */
#include <stdlib.h>
#include <unistd.h>

#include "host/connect/connect.h"
#include "host/inject/inject.h"
#include "host/run/run.h"
#include "mem.h"

static const char NAME[] = "shell";

static int parse(struct link_options *how, const char **target, char **session, int argc, char **argv)
{
    static const struct option options[] = {INJECT_OPTIONS, LINK_OPTIONS, {0}};
    inject_options_init(&how->inject);
    opterr = 0;
    for (int option, at; (at = optind, option = getopt_long(argc, argv, ":", options, NULL)) >= 0;) {
        int status = link_option(how, options, option, NAME, argv[at]);
        if (status != EXIT_OK)
            return status;
    }
    if (argc - optind < 1 || argc - optind > 2)
        return usage_error(NAME, "one target is wanted, such as docker:NAME, and perhaps a session of it");
    *target = argv[optind];
    *session = argv[optind + 1];
    return EXIT_OK;
}

static int shell_main(int argc, char **argv)
{
    struct link_options how = {.persist_ms = CONNECT_USUAL};
    struct target t TARGET_AUTO = {0};
    char applet[] = "bash_session", command[] = "attach", *session = NULL;
    const char *target = NULL;
    int status = parse(&how, &target, &session, argc, argv);
    if (status == EXIT_OK)
        status = inject_running_target(&t, target, &how.inject, NAME);
    if (status != EXIT_OK)
        return status;
    if (!isatty(STDIN_FILENO))
        return applet_failed(NAME, "a terminal is wanted; 'toolbox run' and 'toolbox call' do without");
    char *term MEM_AUTO = mem_printf("TERM=%s", getenv("TERM") ? getenv("TERM") : "dumb");
    char *const argv_there[] = {applet, command, session, NULL}, *const env[] = {term, NULL};
    struct run_request request = {
        .argv = argv_there, .self = true, .env = env, .timeout_s = -1, .input = true, .terminal = true};
    return run_in(NAME, &how, &t, &request);
}

const struct applet shell_applet = {
    .name = "shell",
    .summary = "a shell in a target that can be left and come back to",
    .run = shell_main,
};
