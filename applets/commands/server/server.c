/* server, start-server, stop-server, healthcheck. */
#include "server.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client.h"
#include "commands/confine/server_policy.h"
#include "io.h"
#include "log.h"
#include "mem.h"
#include "proc.h"
#include "relocate.h"
#include "server_internal.h"

/* stop-server and healthcheck take no argument but --help, which applet_main has dealt with. */
static bool no_arguments(int argc, char **argv)
{
    if (argc > 1)
        usage_unknown(argv[0], argv[1][0] == '-' ? "option" : "argument", argv[1], NULL);
    return argc == 1;
}

enum { OPT_LOG_LEVEL = 256, OPT_REPLACE, OPT_POLICY };

#ifdef TOOLBOX_GUEST
#define POLICY_WORD NULL
#define POLICY_OPTION                                                                                        \
    {                                                                                                        \
        0                                                                                                    \
    }
#define take_policy(name, file) EXIT_OK
#else
#define POLICY_WORD "--policy"
#define POLICY_OPTION                                                                                        \
    {                                                                                                        \
        "policy", required_argument, NULL, OPT_POLICY                                                        \
    }

/* Puts it to where every server looks that is started from now on, until stop-server. */
static int take_policy(const char *name, const char *file)
{
    const char *names[METHODS_MAX];
    struct err err;
    struct place place PLACE_AUTO = PLACE_INIT;
    relocate_all();
    tool_method_names(names, METHODS_MAX);
    if (code_unpack(CODE_confine, &err) < 0 || server_policy_load(AT_FDCWD, file, names, &err) < 0)
        return applet_failed(name, "%s", err.msg);
    int fd FD_AUTO = ipc_find(&place, IPC_SERVER);
    if (fd >= 0)
        return applet_failed(
            name, "a server runs in %s already, to which no policy can be given: end it before (stop-server)",
            place.path);
    if (place_open(&place, &err) < 0 || server_policy_put(place.fd, file, &err) < 0)
        return applet_failed(name, "%s", err.msg);
    return EXIT_OK;
}
#endif

/* `replace`: NULL where that is no option. EXIT_OK, or the exit status. */
static int take_options(int argc, char **argv, bool *replace, const char **policy)
{
    const char *const words[] = {"--log-level", replace ? "--replace" : POLICY_WORD, POLICY_WORD, NULL};
    const struct option options[] = {{"log-level", required_argument, NULL, OPT_LOG_LEVEL},
                                     {replace ? "replace" : "log-level",
                                      replace ? no_argument : required_argument, NULL,
                                      replace ? OPT_REPLACE : OPT_LOG_LEVEL},
                                     POLICY_OPTION,
                                     {0}};
    for (int option; (option = usage_option(argv[0], argc, argv, ":", options, words)) >= 0;) {
        int level = option == OPT_LOG_LEVEL ? log_level_of(optarg) : -1;
        if (level >= 0)
            log_set_level((enum log_level)level);
        else if (option == OPT_LOG_LEVEL)
            return usage_unknown(argv[0], "log level", optarg, log_level_names);
        else if (option == OPT_REPLACE)
            *replace = true;
        else if (option == OPT_POLICY)
            *policy = optarg;
        else
            return EXIT_USAGE;
    }
    return optind < argc ? usage_unknown(argv[0], "argument", argv[optind], NULL) : EXIT_OK;
}

static int server_main(int argc, char **argv)
{
    const char *policy = NULL;
    int status = take_options(argc, argv, NULL, &policy);
    if (status == EXIT_OK && policy)
        status = take_policy("server", policy);
    if (status != EXIT_OK)
        return status;
    struct err err;
    struct place place PLACE_AUTO = PLACE_INIT;
    int fd = ipc_find(&place, IPC_SERVER);
    if (fd < 0) {
        int lock_fd = place_open(&place, &err) < 0 ? -1 : server_lock(&place, &err);
        if (lock_fd < 0)
            return applet_failed("server", "%s", err.msg);
        fd = ipc_connect(place.fd, IPC_SERVER, IPC_WAIT_S);
        if (fd < 0 && errno != EAGAIN)
            return server_run(&place, lock_fd, -1, true);
        close(lock_fd);
    }
    io_close(&fd);
    return applet_failed("server", "one is running in %s already", place.path);
}

/* ---- start-server, healthcheck ---- */

#define HEALTH_MS 5000

int server_query(const char *method, int timeout_ms, struct buf *answer, struct span *result, struct err *err)
{
    struct buf request BUF_AUTO = BUF_INIT;
    int fd FD_AUTO = -1;
    rpc_put_request(&request, (struct span){"1", 1}, method, (struct span){0});
    if (server_call(&fd, span_of(&request), true, timeout_ms, answer, err) < 0 ||
        client_result(span_of(answer), result, err) < 0)
        return err_wrap(err, "%s", method);
    client_delivered(fd);
    return 0;
}

static int start_main(int argc, char **argv)
{
    struct err err;
    struct buf answer BUF_AUTO = BUF_INIT;
    struct span result;
    bool replace = false;
    const char *policy = NULL;
    int status = take_options(argc, argv, &replace, &policy);
    if (status == EXIT_OK && policy)
        status = take_policy("start-server", policy);
    if (status != EXIT_OK)
        return status;
    struct buf ended BUF_AUTO = BUF_INIT;
    int left = replace ? server_end_other_builds(&ended, &err) : 0;
    if (ended.len > 0)
        printf("ended %s\n", ended.data);
    if (left < 0 || server_query("remote_version", HEALTH_MS, &answer, &result, &err) < 0)
        return applet_failed("start-server", "%s", err.msg);
    return stdout_flushed();
}

static int health_main(int argc, char **argv)
{
    if (!no_arguments(argc, argv))
        return EXIT_USAGE;
    static const char *const methods[] = {"version", "remote_version"};
    struct err err;
    for (size_t i = 0; i < 2; i++) {
        struct buf answer BUF_AUTO = BUF_INIT;
        struct span result;
        if (server_query(methods[i], HEALTH_MS, &answer, &result, &err) < 0)
            return applet_failed("healthcheck", "%s", err.msg);
        printf("%s\n", answer.data);
    }
    return stdout_flushed();
}

/* ---- stop-server ---- */

#define GONE_MS 10000 /* for a server that is our child to be reaped */

/* It was for what has ended. */
static void forget_policy(void)
{
#ifndef TOOLBOX_GUEST
    struct buf path BUF_AUTO = BUF_INIT;
    for (unsigned n = 0; policy_rules_there() && place_candidate(n, &path); n++) {
        struct place place PLACE_AUTO = PLACE_INIT;
        if (place_enter(&place, path.data, false, NULL) == 0)
            unlinkat(place.fd, SERVER_POLICY, 0);
    }
#endif
}

static int stop_main(int argc, char **argv)
{
    if (!no_arguments(argc, argv))
        return EXIT_USAGE;
    struct err err = {0};
    int result = -2;
    if (place_check_given(&err) < 0)
        return applet_failed("stop-server", "%s", err.msg);
    for (int tries = 0; result == -2 && tries < 3; tries++) {
        struct place place PLACE_AUTO = PLACE_INIT;
        int fd FD_AUTO = ipc_find(&place, IPC_SERVER);
        if (fd < 0) {
            forget_policy();
            struct place leftover PLACE_AUTO = PLACE_INIT;
            if (!server_find_sockets(&leftover, false))
                return EXIT_OK;
            fd = server_connect(&err); /* a new one knows how to end what a dead one has left */
        }
        result = fd < 0 ? -1 : server_shut_down(fd, &err);
    }
    if (result == 0)
        forget_policy();
    if (result == 0)
        proc_reap(GONE_MS); /* it may be our child */
    return result == 0 ? EXIT_OK : applet_failed("stop-server", "%s", err.msg);
}

/* ---- registration ---- */

#define HELP_USAGE                                                                                           \
    "  -h, --help          this text\n"                                                                      \
    "\n"
#define LOG_USAGE                                                                                            \
    "  --log-level LEVEL   error, warning, info (the default) or debug: how much is\n"                       \
    "                      noted in the file \"log\" in the server's directory\n"

const struct applet server_applet = {
    .name = "server",
    .summary = "serve the tools in the foreground",
    .run = server_main,
};

const struct applet start_server_applet = {
    .name = "start-server",
    .summary = "start the server in the background",
    .run = start_main,
};

const struct applet stop_server_applet = {
    .name = "stop-server",
    .summary = "end the server and everything it started",
    .run = stop_main,
};

const struct applet healthcheck_applet = {
    .name = "healthcheck",
    .summary = "check that the tools answer",
    .run = health_main,
};
