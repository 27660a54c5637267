/* server, start-server, stop-server, healthcheck. */
#include "server.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client.h"
#include "io.h"
#include "mem.h"
#include "proc.h"
#include "server_internal.h"

/* None of these takes an argument but --help, which applet_main has dealt with. */
static bool no_arguments(int argc, char **argv)
{
    if (argc > 1)
        usage_unknown(argv[0], argv[1][0] == '-' ? "option" : "argument", argv[1], NULL);
    return argc == 1;
}

static int server_main(int argc, char **argv)
{
    if (!no_arguments(argc, argv))
        return EXIT_USAGE;
    struct err err;
    struct place place PLACE_AUTO = PLACE_INIT;
    int fd = ipc_find(&place, IPC_SERVER);
    if (fd >= 0) {
        close(fd);
        return applet_failed("server", "one is running in %s already", place.path);
    }
    if (place_open(&place, &err) < 0)
        return applet_failed("server", "%s", err.msg);
    return server_run(&place, -1, true);
}

static int start_main(int argc, char **argv)
{
    if (!no_arguments(argc, argv))
        return EXIT_USAGE;
    struct err err;
    int fd = server_connect(&err);
    if (fd < 0)
        return applet_failed("start-server", "%s", err.msg);
    close(fd);
    return EXIT_OK;
}

/* ---- stop-server ---- */

#define STOP_MS 4500 /* the server ends by itself within 4 s */

static void has_keeper(void *arg, const char *owner)
{
    bool *any = arg;
    *any = *any || server_is_keeper(owner);
}

/* A directory that keepers live in; false when there is none. */
static bool find_keepers(void)
{
    struct buf path BUF_AUTO = BUF_INIT;
    bool any = false;
    for (unsigned n = 0; !any && place_candidate(n, &path); n++) {
        struct place place PLACE_AUTO = PLACE_INIT;
        if (place_enter(&place, path.data, false, NULL) == 0)
            ipc_each(place.fd, has_keeper, &any);
    }
    return any;
}

static bool is_stopped(pid_t pid)
{
    struct proc p;
    return proc_read(pid, &p) == 0 && (p.state == 'T' || p.state == 't');
}

/* Asks the server behind fd to end everything. 0; -1 when it said that something is left, or could not be
 * made to answer and was killed (*retry then: its keepers are still there). */
static int shut_down(int fd, bool *retry, struct err *err)
{
    pid_t pid = 0;
    uid_t uid;
    struct buf request BUF_AUTO = BUF_INIT;
    struct buf answer BUF_AUTO = BUF_INIT;
    struct span result;
    rpc_put_request(&request, (struct span){"1", 1}, "sandbox_tools_shutdown", (struct span){0});
    ipc_peer(fd, &pid, &uid);
    bool answered = !is_stopped(pid) && client_call(fd, span_of(&request), &answer, STOP_MS, err) == 0;
    if (answered) {
        client_delivered(fd);
        return client_result(span_of(&answer), &result, err);
    }
    if (pid > 0)
        kill(pid, SIGKILL);
    *retry = true;
    return err_set(err, ERR_TOOL, "the server (pid %ld) did not answer and was killed", (long)pid);
}

/* The answer is the server's last act but one: gone means that its socket refuses. */
static void wait_gone(void)
{
    for (int i = 0; i < 200; i++) {
        struct place place PLACE_AUTO = PLACE_INIT;
        int fd FD_AUTO = ipc_find(&place, IPC_SERVER);
        if (fd < 0)
            return;
        usleep(5000);
    }
}

static int stop_main(int argc, char **argv)
{
    if (!no_arguments(argc, argv))
        return EXIT_USAGE;
    struct err err = {0};
    for (int tries = 0; tries < 3; tries++) {
        struct place place PLACE_AUTO = PLACE_INIT;
        bool retry = false;
        int fd FD_AUTO = ipc_find(&place, IPC_SERVER);
        if (fd < 0 && !find_keepers())
            return EXIT_OK;
        if (fd < 0)
            fd = server_connect(
                &err); /* keepers that outlived their server: a new one knows how to end them */
        if (fd < 0)
            return applet_failed("stop-server", "%s", err.msg);
        int result = shut_down(fd, &retry, &err);
        wait_gone();
        if (!retry)
            return result == 0 ? EXIT_OK : applet_failed("stop-server", "%s", err.msg);
    }
    return applet_failed("stop-server", "%s", err.msg);
}

/* ---- healthcheck ---- */

#define HEALTH_MS 5000

static int health_main(int argc, char **argv)
{
    if (!no_arguments(argc, argv))
        return EXIT_USAGE;
    static const char *const methods[] = {"version", "remote_version"};
    struct err err;
    int fd FD_AUTO = server_connect(&err);
    if (fd < 0)
        return applet_failed("healthcheck", "%s", err.msg);
    for (size_t i = 0; i < 2; i++) {
        struct buf request BUF_AUTO = BUF_INIT;
        struct buf answer BUF_AUTO = BUF_INIT;
        struct span result;
        rpc_put_request(&request, (struct span){"1", 1}, methods[i], (struct span){0});
        if (client_call(fd, span_of(&request), &answer, HEALTH_MS, &err) < 0 ||
            client_result(span_of(&answer), &result, &err) < 0)
            return applet_failed("healthcheck", "%s: %s", methods[i], err.msg);
        client_delivered(fd);
        printf("%.*s\n", (int)answer.len, answer.data);
    }
    return fflush(stdout) == 0 ? EXIT_OK : applet_failed("healthcheck", "cannot write: %s", err_text(errno));
}

/* ---- registration ---- */

const struct applet server_applet = {
    .name = "server",
    .summary = "serve the tools in the foreground",
    .usage = "Usage: toolbox server\n"
             "\n"
             "Serves sessions, jobs and MCP servers on a Unix socket, in the foreground, until TERM or INT; "
             "then ends all of\n"
             "them. Nobody needs to call it: `toolbox exec` starts a server in the background when a call "
             "needs one. As\n"
             "process 1 of a container it reaps orphans as well.\n",
    .run = server_main,
};

const struct applet start_server_applet = {
    .name = "start-server",
    .summary = "start the server in the background",
    .usage = "Usage: toolbox start-server\n"
             "\n"
             "Returns once the server answers; does nothing where one runs already. Sessions and jobs begin "
             "in the current\n"
             "directory, with the current environment.\n",
    .run = start_main,
};

const struct applet stop_server_applet = {
    .name = "stop-server",
    .summary = "end the server and everything it started",
    .usage = "Usage: toolbox stop-server\n"
             "\n"
             "Ends every session, job and MCP server with all their descendants (TERM, after 2 s KILL), then "
             "the server. Does\n"
             "nothing where none runs. Exits with 1 when something survived.\n",
    .run = stop_main,
};

const struct applet healthcheck_applet = {
    .name = "healthcheck",
    .summary = "check that the tools answer",
    .usage = "Usage: toolbox healthcheck\n"
             "\n"
             "Prints the answers to `version` and `remote_version`, starting the server where none runs. "
             "Exits with 1 when one of\n"
             "them isn't to be had within 5 seconds.\n",
    .run = health_main,
};
