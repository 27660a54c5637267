#include "other_builds.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io.h"
#include "mem.h"
#include "program.h"
#include "server_internal.h"

/* ---- who there is ---- */

struct looking {
    struct other_builds *found;
    int dirfd;
};

/* The entry of a build in this place. */
static struct other_build *entry_of(const struct looking *l, const char *build)
{
    struct other_builds *o = l->found;
    for (size_t i = 0; i < o->n; i++)
        if (strcmp(o->list[i].build, build) == 0)
            return &o->list[i];
    o->list = mem_realloc(o->list, (o->n + 1) * sizeof *o->list);
    struct other_build *b = &o->list[o->n++];
    *b = (struct other_build){.dirfd = fcntl(l->dirfd, F_DUPFD_CLOEXEC, 0)};
    snprintf(b->build, sizeof b->build, "%s", build);
    return b;
}

static void add_keeper(struct other_build *b, const char *owner, pid_t pid)
{
    b->keepers = mem_realloc(b->keepers, (b->n_keepers + 1) * sizeof *b->keepers);
    b->keepers[b->n_keepers].pid = pid;
    snprintf(b->keepers[b->n_keepers++].name, IPC_NAME_MAX, "%s", owner);
}

/* 0: nobody listens there. One that is stopped, or has a full queue, lives; but who it is isn't known. */
static pid_t listener_of(int dirfd, const char *name, bool *lives)
{
    pid_t pid = 0;
    uid_t uid;
    int fd FD_AUTO = ipc_connect_file(dirfd, name, 0);
    *lives = fd >= 0 || errno == EAGAIN;
    return fd >= 0 && ipc_peer(fd, &pid, &uid) == 0 ? pid : 0;
}

static void look_at(void *arg, const char *name)
{
    const struct looking *l = arg;
    char owner[IPC_NAME_MAX], build[BUILD_ID_SIZE];
    bool lives;
    if (tools_keep_in(l->dirfd, name) && ipc_other_build(name, build))
        entry_of(l, build);
    if (!ipc_split(name, owner, build) || strncmp(owner, IPC_TRANSIENT, strlen(IPC_TRANSIENT)) == 0)
        return;
    pid_t pid = listener_of(l->dirfd, name, &lives);
    if (!lives)
        return;
    struct other_build *b = entry_of(l, build);
    if (ipc_is_keeper(owner)) {
        add_keeper(b, owner, pid);
    } else {
        b->has_server = true;
        b->server = pid;
    }
}

void other_builds_find(struct other_builds *o)
{
    struct buf path BUF_AUTO = BUF_INIT;
    *o = (struct other_builds){0};
    for (unsigned n = 0; place_candidate(n, &path); n++) {
        struct place place PLACE_AUTO = PLACE_INIT;
        if (place_enter(&place, path.data, false, NULL) == 0)
            ipc_each_other(place.fd, look_at, &(struct looking){o, place.fd});
    }
}

void other_builds_release(struct other_builds *o)
{
    for (size_t i = 0; i < o->n; i++) {
        io_close(&o->list[i].dirfd);
        free(o->list[i].keepers);
    }
    free(o->list);
    *o = (struct other_builds){0};
}

const struct other_build *other_builds_with(const struct other_builds *o, const char *owner)
{
    for (size_t i = 0; i < o->n; i++)
        for (size_t k = 0; k < o->list[i].n_keepers; k++)
            if (strcmp(o->list[i].keepers[k].name, owner) == 0)
                return &o->list[i];
    return NULL;
}

bool other_builds_have_pid(const struct other_builds *o, pid_t pid)
{
    for (size_t i = 0; i < o->n; i++) {
        if (o->list[i].server == pid)
            return true;
        for (size_t k = 0; k < o->list[i].n_keepers; k++)
            if (o->list[i].keepers[k].pid == pid)
                return true;
    }
    return false;
}

struct sought {
    const char *owner;
    bool found;
};

static void compare(void *arg, const char *name)
{
    struct sought *s = arg;
    char owner[IPC_NAME_MAX], build[BUILD_ID_SIZE];
    s->found = s->found || (ipc_split(name, owner, build) && strcmp(owner, s->owner) == 0);
}

bool other_builds_used(int dirfd, const char *owner)
{
    struct sought s = {.owner = owner};
    ipc_each_other(dirfd, compare, &s);
    return s.found;
}

/* ---- its program ---- */

int other_build_open(const struct other_build *b, const char *owner, struct err *err)
{
    int fd = program_open(b->dirfd, b->build, err);
    return fd >= 0 ? fd : err_wrap(err, "%s runs in another build of toolbox", owner);
}

void other_builds_hand_over(const char *owner, char *const *argv, struct span input)
{
    struct other_builds others OTHER_BUILDS_AUTO = {0};
    other_builds_find(&others);
    const struct other_build *b = other_builds_with(&others, owner);
    int program FD_AUTO = b ? other_build_open(b, owner, NULL) : -1;
    if (program >= 0)
        program_exec(program, argv, input.s, input.n);
}

static _Noreturn void run(int program, char *const *argv, struct span input, int out)
{
    if (dup2(out, STDOUT_FILENO) >= 0)
        program_exec(program, argv, input.s ? input.s : "", input.n);
    _exit(127);
}

/* Until the end of the output; false when that doesn't come. */
static bool collect(int fd, long long until, struct buf *out)
{
    for (;;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        long long left = until - now_ms();
        if (left <= 0 || (poll(&p, 1, (int)left) < 0 && errno != EINTR))
            return false;
        if (p.revents == 0)
            continue;
        buf_reserve(out, 65536);
        ssize_t n = read(fd, out->data + out->len, 65536);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n == 0;
        out->len += (size_t)n;
        out->data[out->len] = '\0';
    }
}

int other_build_run(int program, char *const *argv, struct span input, int limit_ms, struct buf *out)
{
    int ends[2], status = -1;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -1;
    pid_t pid = fork();
    if (pid == 0)
        run(program, argv, input, ends[1]);
    close(ends[1]);
    bool whole = pid > 0 && collect(ends[0], now_ms() + limit_ms, out);
    close(ends[0]);
    if (pid < 0)
        return -1;
    if (!whole)
        kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return whole && WIFEXITED(status) && WEXITSTATUS(status) != 127 ? WEXITSTATUS(status) : -1;
}
