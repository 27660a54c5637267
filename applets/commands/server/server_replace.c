/* --replace: the end of other builds' servers and of all that they keep. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client.h"
#include "io.h"
#include "mem.h"
#include "other_builds.h"
#include "proc.h"
#include "program.h"
#include "server_internal.h"

#define KEEPER_MS 3300 /* as the server allows them (server_end.c) */

struct names {
    char (*at)[IPC_NAME_MAX];
    size_t n;
};

static void collect(void *arg, const char *name)
{
    struct names *names = arg;
    names->at = mem_realloc(names->at, (names->n + 1) * sizeof *names->at);
    snprintf(names->at[names->n++], IPC_NAME_MAX, "%s", name);
}

static bool is_server(const char *name)
{
    return strncmp(name, IPC_SERVER ".", strlen(IPC_SERVER) + 1) == 0;
}

/* A keeper whose server is gone, or was stuck. Where it doesn't know the method or doesn't answer, it is
 * killed with all that hangs below it. */
static int end_keeper(int fd)
{
    pid_t pid = 0;
    uid_t uid;
    struct buf request BUF_AUTO = BUF_INIT;
    struct buf answer BUF_AUTO = BUF_INIT;
    struct span result;
    rpc_put_request(&request, (struct span){"1", 1}, KEEPER_END, (struct span){0});
    ipc_peer(fd, &pid, &uid);
    kill(pid, SIGCONT);
    if (client_call(fd, span_of(&request), &answer, KEEPER_MS, NULL) == 0 &&
        client_result(span_of(&answer), &result, NULL) == 0) {
        client_delivered(fd);
        return span_is(result, "0") ? 0 : -1;
    }
    return proc_kill_tree(pid) == 0 ? 0 : -1;
}

/* Ends who listens at one of the names: servers, or keepers. How many didn't end. */
static size_t end_each(int dirfd, const struct names *names, bool servers)
{
    size_t left = 0;
    for (size_t i = 0; i < names->n; i++) {
        const char *name = names->at[i];
        int fd FD_AUTO =
            is_server(name) == servers && *name != '.' ? ipc_connect_file(dirfd, name, IPC_WAIT_S) : -1;
        if (fd >= 0)
            left += servers ? server_shut_down(fd, NULL) == -1 : end_keeper(fd) < 0;
    }
    return left;
}

/* The servers first: each ends its own keepers. */
static size_t end_in(int dirfd)
{
    struct names names = {0};
    ipc_each_other(dirfd, collect, &names);
    size_t left = end_each(dirfd, &names, true) + end_each(dirfd, &names, false);
    for (size_t i = 0; i < names.n; i++)
        unlinkat(dirfd, names.at[i], 0);
    free(names.at);
    return left;
}

/* By its own program, where that is to be had. What that leaves is ended from here. */
static void end_by_itself(const struct other_build *b, struct buf *ended)
{
    char name[] = "toolbox", command[] = "stop-server", *const argv[] = {name, command, NULL};
    struct buf nothing BUF_AUTO = BUF_INIT;
    int program FD_AUTO = program_open(b->dirfd, b->build, NULL);
    for (size_t i = 0; i < b->n_keepers; i++)
        buf_addf(ended, "%s%s", ended->len > 0 ? ", " : "", b->keepers[i].name);
    if (program >= 0)
        other_build_run(program, argv, (struct span){0}, SERVER_END_MS, &nothing);
}

int server_end_other_builds(struct buf *ended, struct err *err)
{
    struct buf path BUF_AUTO = BUF_INIT;
    struct other_builds others OTHER_BUILDS_AUTO = {0};
    size_t left = 0;
    other_builds_find(&others);
    for (size_t i = 0; i < others.n; i++)
        end_by_itself(&others.list[i], ended);
    for (unsigned n = 0; place_candidate(n, &path); n++) {
        struct place place PLACE_AUTO = PLACE_INIT;
        if (place_enter(&place, path.data, false, NULL) == 0)
            left += end_in(place.fd);
    }
    return left == 0
               ? 0
               : err_set(err, ERR_TOOL, "processes of another build's server could not be ended; see ps");
}
