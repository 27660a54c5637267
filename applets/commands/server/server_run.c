/* The server process: setting up, keepers, routing. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client.h"
#include "err.h"
#include "commands/confine/server_policy.h"
#include "io.h"
#include "log.h"
#include "mem.h"
#include "proc.h"
#include "program.h"
#include "relocate.h"
#include "self.h"
#include "server_internal.h"
#include "spawn.h"
#include "version.h"

#define SETTLE_MS 200 /* for who removes the directory to come from its files to itself */
#define RECORD_MS 1   /* what has to be done at the start goes before */
#define RECORD_AGAIN_MS 20
#define WATCHED_MOST 64 /* each takes a descriptor; what others leave is found a little later */
#define LOOK_MS 3600000 /* where nothing tells of changes */

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
    if (name[n] != '_')
        return -1;
    char *end;
    long number = strtol(name + n + 1, &end, 10);
    return number > 0 && *end == '\0' ? number : -1;
}

static void look_for_highest(void *arg, const char *owner)
{
    struct highest *h = arg;
    long number = number_of(owner, h->prefix);
    if (number > h->number)
        h->number = number;
}

/* A call that names it would not know which of two to go to. */
static void look_for_highest_other(void *arg, const char *file)
{
    char owner[IPC_NAME_MAX], build[BUILD_ID_SIZE];
    if (ipc_split(file, owner, build))
        look_for_highest(arg, owner);
}

/* Socket files of ended keepers stay until stop-server, so the directory knows, also for the next server;
 * keepers that are on their way have no socket yet. */
void server_next_name(struct server *s, const char *prefix, char name[IPC_NAME_MAX])
{
    struct highest h = {.prefix = prefix, .number = -1};
    ipc_each(s->base.dirfd, look_for_highest, &h);
    ipc_each_other(s->base.dirfd, look_for_highest_other, &h);
    for (const struct kept *k = s->kept; k; k = k->next)
        look_for_highest(&h, k->name);
    if (h.number < 0)
        snprintf(name, IPC_NAME_MAX, "%s", prefix);
    else
        snprintf(name, IPC_NAME_MAX, "%s_%ld", prefix, h.number + 1);
}

/* ---- keepers ---- */

static void forget(struct kept *gone)
{
    for (struct kept **at = &gone->server->kept; *at; at = &(*at)->next) {
        if (*at == gone) {
            *at = gone->next;
            free(gone->whom);
            free(gone);
            return;
        }
    }
}

/* A keeper that was killed could not end what hangs below it; as its subreaper the server got that now. */
static void keeper_exited(void *arg, pid_t pid, int status)
{
    struct kept *k = arg;
    struct server *s = k->server;
    const char *name = *k->name ? k->name : "a job";
    if (WIFSIGNALED(status))
        log_line(LOG_ERROR, "%s (keeper %ld) was killed by signal %d", name, (long)pid, WTERMSIG(status));
    else
        log_line(*k->name ? LOG_INFO : LOG_DEBUG, "%s (keeper %ld) has ended", name, (long)pid);
    if (k->pooled)
        socket_pool_return(k->pooled, s->base.dirfd);
    if (k->whom)
        server_tell(s, "ended", k->whom);
    forget(k);
    server_may_retire(s);
    if (WIFSIGNALED(status))
        server_end_orphans(s);
}

void server_fork_keeper(struct server *s, const char *name, keeper_start_fn start, void *arg, keeper_up_fn up,
                        void *up_arg)
{
    struct err err;
    relocate_all(); /* both here, so that all keepers share them */
    if ((s->ending ? err_set(&err, ERR_TOOL, "the server is ending") : code_unpack(CODE_tools, &err)) < 0) {
        up(up_arg, -1, NULL, &err);
        return;
    }
    struct pooled_socket *pooled = *name ? NULL : socket_pool_lend(s->pool, s->base.dirfd);
    pid_t pid = keeper_fork(&s->base, name, pooled, start, arg, up, up_arg);
    if (pid <= 0 && pooled)
        socket_pool_return(pooled, s->base.dirfd);
    if (pid <= 0)
        return;
    struct kept *k = mem_zalloc(sizeof *k);
    *k = (struct kept){.next = s->kept, .server = s, .pid = pid, .pooled = pooled};
    snprintf(k->name, sizeof k->name, "%s", name);
    s->kept = k;
    s->keepers_started++;
    log_line(*name ? LOG_INFO : LOG_DEBUG, "started %s (keeper %ld)", *name ? name : "a job", (long)pid);
    loop_child(s->base.loop, pid, keeper_exited, k);
}

/* ---- keepers of the one before ---- */

/* It has left a socket: what it has started is somebody else's child now. */
static void found_has_ended(void *arg)
{
    server_end_orphans(arg);
}

static void look_at_found(void *arg, const char *owner)
{
    struct server *s = arg;
    pid_t pid;
    uid_t uid;
    if (!ipc_is_keeper(owner))
        return;
    s->found++;
    int fd FD_AUTO = ipc_connect(s->base.dirfd, owner, 0);
    if (fd >= 0 && s->found <= WATCHED_MOST && ipc_peer(fd, &pid, &uid) == 0)
        proc_watch(s->base.loop, pid, found_has_ended, s);
}

static void take_over(struct server *s)
{
    ipc_each(s->base.dirfd, look_at_found, s);
    if (s->found > 0)
        server_end_orphans(s);
}

/* ---- routing ---- */

static void to_keeper(struct rpc_call *call, struct span params, void *ctx);

/* The keeper ended with the call in its queue. */
static void to_keeper_again(struct rpc_call *call, void *ctx)
{
    struct rpc_request r;
    rpc_request_parse(&r, rpc_request_text(call), NULL);
    to_keeper(call, r.params, ctx);
}

/* For clients that know no other way. */
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
    if (tool->in_turn)
        rpc_in_turn(call, owner);
    int fd = ipc_connect(s->base.dirfd, owner, 0), why = errno;
    if (fd >= 0)
        rpc_forward(call, s->base.loop, fd, to_keeper_again, s);
    else if (why == EAGAIN)
        server_no_keeper(call, s->base.dirfd, owner, why);
    else if (!server_pass_to_other(s, call, owner, tool->keeps && !tool->keeps(s->base.dirfd, owner)))
        server_without_keeper(s, call);
}

#ifndef TOOLBOX_GUEST
static void refuse_by_policy(struct rpc_call *call, struct span params, void *ctx)
{
    struct err err;
    (void)params, (void)ctx;
    err_set(&err, ERR_TOOL, "refused by the policy of this server: this method can't be called");
    rpc_fail(call, &err);
}

static int take_policy(int place, struct err *err)
{
    const char *names[METHODS_MAX];
    if (!io_is_there(place, SERVER_POLICY))
        return 0;
    relocate_all();
    tool_method_names(names, METHODS_MAX);
    if (code_unpack(CODE_confine, err) < 0 || server_policy_load(place, SERVER_POLICY, names, err) < 0)
        return -1;
    rpc_watch = server_policy->audit_file.s ? server_policy_audit : NULL;
    return 0;
}
#else
#define take_policy(place, err) 0
#endif

rpc_handler server_find(void *ctx, const char *name, void **handler_ctx)
{
    struct method m = tool_method(name);
    *handler_ctx = ctx;
#ifndef TOOLBOX_GUEST
    if (m.kind != METHOD_UNKNOWN && !policy_rules_allow(name))
        return refuse_by_policy;
#endif
    if (strcmp(name, SERVER_LEAVE) == 0)
        return server_leave;
    switch (m.kind) {
    case METHOD_IN_PROCESS:
        return server_in_process;
    case METHOD_KEEPER:
        return to_keeper;
    default:
        if (m.tool != &server_tool)
            relocate_all();
        return m.run;
    }
}

/* ---- its place ---- */

/* Nobody can reach a server without its directory, or end what it has started. Where only its socket is lost
 * the next one takes the keepers over; but process 1 is of use without. */
static void look(void *arg)
{
    struct server *s = arg;
    struct stat st;
    if (s->ending)
        return;
    if (fstat(s->base.dirfd, &st) == 0 && st.st_nlink == 0)
        server_end_all(s, NULL, NULL);
    else if (!server_has_socket(s) && getpid() != 1)
        loop_stop(s->base.loop,
                  s->foreground ? applet_failed("server", "its socket was removed or replaced") : 0);
    else if (s->socket.inotify < 0)
        loop_timer_set(s->socket.look, LOOK_MS);
}

static void something_changed(void *arg, int events)
{
    struct server *s = arg;
    char data[4096] __attribute__((aligned(8)));
    (void)events;
    ssize_t n;
    while ((n = read(s->socket.inotify, data, sizeof data)) > 0) {
        const struct inotify_event *e;
        for (char *at = data; at < data + n; at += sizeof *e + e->len) {
            e = (const struct inotify_event *)(void *)at;
            if (e->wd == s->socket.directory)
                server_end_all(s, NULL, NULL);
        }
    }
    if (!server_has_socket(s))
        loop_timer_set(s->socket.look, SETTLE_MS);
}

/* Moves of the directory, and the end of the socket's name: not all that happens in the directory, which
 * would wake us several times for every job. The directory's own removal is told only when nobody has it open
 * any more, and we have: but the socket goes first. */
static void watch_directory(struct server *s)
{
    char socket[IPC_NAME_MAX];
    s->socket.inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (s->socket.inotify >= 0 && ipc_name(socket, IPC_SERVER) == 0 &&
        inotify_add_watch(s->socket.inotify, socket, IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF) >= 0 &&
        (s->socket.directory = inotify_add_watch(s->socket.inotify, ".", IN_MOVE_SELF | IN_ONLYDIR)) >= 0)
        loop_fd(s->base.loop, s->socket.inotify, LOOP_READ, something_changed, s);
    else
        io_close(&s->socket.inotify); /* instances are few in a crowded machine */
    s->socket.look = loop_timer(s->base.loop, LOOK_MS, look, s);
}

/* ---- life ---- */

static void on_signal(void *arg, int signal)
{
    log_line(LOG_INFO, "got signal %d", signal);
    server_end_all(arg, NULL, NULL);
}

/* In the foreground the end of the terminal is the end of the server; in the background it is nothing. */
static void end_on_hangup(int number)
{
    (void)number;
    kill(getpid(), SIGTERM);
}

/* What the starter has blocked is not blocked here: no child would ever be waited for. */
static void take_signals(struct server *s)
{
    struct sigaction hup, end = {.sa_handler = end_on_hangup, .sa_flags = SA_RESTART};
    sigset_t none;
    sigemptyset(&none);
    sigemptyset(&end.sa_mask);
    if (s->foreground && sigaction(SIGHUP, NULL, &hup) == 0 && hup.sa_handler != SIG_IGN)
        sigaction(SIGHUP, &end, NULL);
    loop_on_signal(s->base.loop, on_signal, s);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static int listen_in(struct server *s, const struct place *place, struct err *err)
{
    s->base.env = spawn_env(environ, NULL, NULL);
    s->base.start_dir = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    s->base.dirfd = place->fd;
    s->path = mem_strdup(place->path);
    s->started_ms = now_ms();
    s->base.loop = loop_new(err);
    int fd = s->base.loop ? ipc_listen(place->fd, IPC_SERVER, err) : -1;
    if (fd < 0)
        return err_wrap(err, "%s", place->path);
    if (!server_know_socket(s)) { /* without its number it could not tell that it has lost its socket */
        int failed = errno;
        ipc_unlink(place->fd, IPC_SERVER);
        close(fd);
        return err_sys(err, ERR_TOOL, failed, "%s", place->path);
    }
    return fd;
}

/* Which program this is, for other builds: its sum takes longer than the start. What failed is tried again,
 * ever more rarely. */
static void record_program(void *arg)
{
    struct server *s = arg;
    long long lived = now_ms() - s->started_ms;
    if (s->program.path && program_record_own(s->base.dirfd, s->program.path) < 0) {
        log_line(LOG_WARNING, "cannot note which program this is: %s", err_text(errno));
        loop_timer_set(s->program.recorder, lived > RECORD_AGAIN_MS ? lived : RECORD_AGAIN_MS);
        return;
    }
    loop_drop(&s->program.recorder);
    free(s->program.path);
    s->program.path = NULL;
}

int server_run(struct place *place, int lock_fd, int ready_fd, bool foreground)
{
    struct err err = {0};
    struct server *s = mem_zalloc(sizeof *s);
    int keep[] = {place->fd, lock_fd, ready_fd};
    io_close_others(keep, 3);
    s->foreground = foreground;
    int listen_fd = take_policy(place->fd, &err) < 0 ? -1 : listen_in(s, place, &err);
    io_close(&lock_fd);
    if (listen_fd < 0) {
        if (ready_fd >= 0)
            io_write_all(ready_fd, &err, sizeof err);
        return foreground ? applet_failed("server", "%s", err.msg) : EXIT_FAILED;
    }
    background(&s->base, "toolbox server", !foreground);
    s->base.detached = !foreground;
    socket_pool_clear(s->base.dirfd);
    watch_directory(s);
    take_signals(s);
    s->program.path = self_path(); /* now: by then another build may have its name */
    s->program.recorder = loop_timer(s->base.loop, RECORD_MS, record_program, s);
    s->http = http_server_new(s->base.loop, listen_fd, server_find, s);
    log_open(s->base.dirfd, foreground);
    log_line(LOG_INFO, "server %s (build %s) has started", toolbox_version, toolbox_build_id);
    if (ready_fd >= 0) {
        io_write_all(ready_fd, "", 1);
        close(ready_fd);
    }
    take_over(s);
    tools_sweep(s->base.dirfd);
    return loop_run(s->base.loop);
}
