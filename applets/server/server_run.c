/* The server process: setting up, keepers, routing. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client.h"
#include "err.h"
#include "io.h"
#include "mem.h"
#include "proc.h"
#include "server_internal.h"
#include "spawn.h"

const struct base *server_base(const struct server *s)
{
    return &s->base;
}

/* ---- names ---- */

struct highest {
    const char *prefix;
    long number;
};

/* PREFIX is number 0, PREFIX_N number N; -1 for anything else. */
static long number_of(const char *name, const char *prefix)
{
    size_t n = strlen(prefix);
    if (strncmp(name, prefix, n) != 0)
        return -1;
    if (name[n] == '\0')
        return 0;
    char *end;
    long number = name[n] == '_' ? strtol(name + n + 1, &end, 10) : -1;
    return number > 0 && *end == '\0' ? number : -1;
}

static void look_for_highest(void *arg, const char *owner)
{
    struct highest *h = arg;
    long number = number_of(owner, h->prefix);
    if (number > h->number)
        h->number = number;
}

/* Socket files of ended keepers stay until stop-server, so the directory knows, also for the next server;
 * keepers that are on their way have no socket yet. */
void server_next_name(struct server *s, const char *prefix, char name[IPC_NAME_MAX])
{
    struct highest h = {.prefix = prefix, .number = -1};
    ipc_each(s->base.dirfd, look_for_highest, &h);
    for (const struct kept *k = s->kept; k; k = k->next)
        look_for_highest(&h, k->name);
    if (h.number < 0)
        snprintf(name, IPC_NAME_MAX, "%s", prefix);
    else
        snprintf(name, IPC_NAME_MAX, "%s_%ld", prefix, h.number + 1);
}

/* ---- keepers ---- */

bool server_is_keeper(const char *owner)
{
    return strcmp(owner, IPC_SERVER) != 0 && strncmp(owner, IPC_TRANSIENT, strlen(IPC_TRANSIENT)) != 0;
}

static bool is_keeper(void *arg, pid_t pid)
{
    const struct server *s = arg;
    for (const struct kept *k = s->kept; k; k = k->next)
        if (k->pid == pid)
            return true;
    return false;
}

static void forget(struct kept *gone)
{
    for (struct kept **at = &gone->server->kept; *at; at = &(*at)->next) {
        if (*at == gone) {
            *at = gone->next;
            free(gone);
            return;
        }
    }
}

static void ended(void *arg, size_t left)
{
    (void)arg;
    (void)left;
}

/* A keeper that was killed could not end what hangs below it; as its subreaper the server got that now. */
static void keeper_exited(void *arg, pid_t pid, int status)
{
    struct kept *k = arg;
    struct server *s = k->server;
    (void)pid;
    forget(k);
    if (WIFSIGNALED(status) && !s->ending)
        tree_end(s->base.loop, 0, 2000, 4000, is_keeper, ended, s);
}

void server_fork_keeper(struct server *s, const char *name, keeper_start_fn start, void *arg, keeper_up_fn up,
                        void *up_arg)
{
    if (s->ending) {
        struct err err;
        err_set(&err, ERR_TOOL, "the server is ending");
        up(up_arg, -1, NULL, &err);
        return;
    }
    pid_t pid = keeper_fork(&s->base, name, start, arg, up, up_arg);
    if (pid <= 0)
        return;
    struct kept *k = mem_zalloc(sizeof *k);
    *k = (struct kept){.next = s->kept, .server = s, .pid = pid};
    snprintf(k->name, sizeof k->name, "%s", name);
    s->kept = k;
    loop_child(s->base.loop, pid, keeper_exited, k);
}

/* ---- routing ---- */

/* For clients that know no other door. */
static void to_keeper(struct rpc_call *call, struct span params, void *ctx)
{
    struct server *s = ctx;
    struct err err;
    char owner[IPC_NAME_MAX];
    struct rpc_request r;
    rpc_request_parse(&r, rpc_request_text(call), NULL);
    const struct tool *tool = tool_method(r.method).tool;
    if (tool->keeper_of(params, owner, &err) < 0) {
        rpc_fail(call, &err);
        return;
    }
    int fd = ipc_connect(s->base.dirfd, owner);
    if (fd >= 0) {
        rpc_forward(call, s->base.loop, fd);
        return;
    }
    err_set(&err, ERR_TOOL,
            ipc_exists(s->base.dirfd, owner) ? "%s has ended; start a new one"
                                             : "there is no %s; start one first",
            owner);
    rpc_fail(call, &err);
}

rpc_handler server_find(void *ctx, const char *name, void **handler_ctx)
{
    struct method m = tool_method(name);
    *handler_ctx = ctx;
    switch (m.kind) {
    case METHOD_IN_PROCESS:
        return server_in_process;
    case METHOD_KEEPER:
        return to_keeper;
    default:
        return m.run;
    }
}

/* ---- life ---- */

static void stopped(void *arg, size_t left)
{
    struct server *s = arg;
    loop_stop(s->base.loop, left > 0);
}

static void end_for_good(struct server *s)
{
    if (!s->ending)
        server_end_all(s, stopped, s);
}

static void on_signal(void *arg, int signal)
{
    (void)signal;
    end_for_good(arg);
}

/* The directory is the only way in: without it nobody could reach the server or end it. */
static void directory_changed(void *arg, int events)
{
    struct server *s = arg;
    (void)events;
    end_for_good(s);
}

static void watch_directory(struct server *s)
{
    int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (fd >= 0 && inotify_add_watch(fd, ".", IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR) >= 0)
        loop_fd(s->base.loop, fd, LOOP_READ, directory_changed, s);
    else
        io_close(&fd); /* instances are few in a crowded machine; then it lives until told to stop */
}

static int set_up(struct server *s, struct place *place, struct err *err)
{
    s->base.env = spawn_env(environ, NULL, NULL);
    s->base.start_dir = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    s->base.dirfd = place->fd;
    s->base.loop = loop_new(err);
    return s->base.loop ? ipc_listen(place->fd, IPC_SERVER, err) : -1;
}

int server_run(struct place *place, int ready_fd, bool foreground)
{
    struct err err = {0};
    struct server *s = mem_zalloc(sizeof *s);
    int keep[] = {place->fd, ready_fd};
    io_close_others(keep, 2);
    int listen_fd = set_up(s, place, &err);
    if (listen_fd < 0) {
        if (ready_fd >= 0)
            io_write_all(ready_fd, &err, sizeof err);
        return foreground ? applet_failed("server", "%s", err.msg) : EXIT_FAILED;
    }
    background(&s->base, "toolbox server", !foreground);
    watch_directory(s);
    loop_on_signal(s->base.loop, on_signal, s);
    s->http = http_server_new(s->base.loop, listen_fd, server_find, s);
    if (ready_fd >= 0) {
        io_write_all(ready_fd, "", 1);
        close(ready_fd);
    }
    return loop_run(s->base.loop);
}
