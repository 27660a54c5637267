/* Going on from what another build's keeper has handed over. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io.h"
#include "log.h"
#include "mem.h"
#include "moving.h"
#include "program.h"
#include "relocate.h"
#include "server.h"
#include "title.h"

#define AGAIN_MS 100 /* where there is nobody to go back to */
#define AGAIN_TIMES 100

struct adoption {
    struct handover h;
    int fd; /* of the record */
    const struct moving *how;
    struct keeper *keeper;
    char socket[IPC_NAME_MAX], hidden[1 + IPC_NAME_MAX]; /* of the build where it was */
    int listen_fd, older;                                /* socket and program of that build */
    int program;                                         /* to go back to; -1: none */
    int failures;
};

/* ---- what is in the record ---- */

static int find_kind(struct adoption *a, struct err *err)
{
    for (const struct tool *const *t = tool_list(); *t; t++)
        if ((*t)->moving && strcmp((*t)->moving->kind, a->h.kind) == 0)
            a->how = (*t)->moving;
    if (!a->how)
        return err_set(err, ERR_TOOL, "'%s' is nothing that this build takes over", a->h.kind);
    if (a->how->number != a->h.number)
        return err_set(err, ERR_TOOL, "record %d of %s is not known to this build, which knows %d",
                       a->h.number, a->h.kind, a->how->number);
    return 0;
}

/* A file's name in the place. */
static int name_in(const struct handover *h, const char *key, char *name, size_t size, struct err *err)
{
    const char *text;
    size_t n;
    if (handover_get(h, key, &text, &n, err) < 0)
        return -1;
    if (n == 0 || n >= size || memchr(text, '/', n) || memchr(text, '\0', n))
        return err_set(err, ERR_TOOL, "%s of the record is no name", key);
    memcpy(name, text, n);
    name[n] = '\0';
    return 0;
}

static int read_keeper(struct adoption *a, struct err *err)
{
    struct keeper *k = a->keeper;
    char socket[IPC_NAME_MAX];
    if (name_in(&a->h, "keeper.name", k->name, sizeof k->name, err) < 0 ||
        name_in(&a->h, "keeper.socket", a->socket, sizeof a->socket, err) < 0 ||
        name_in(&a->h, "keeper.hidden", a->hidden, sizeof a->hidden, err) < 0 ||
        handover_fd(&a->h, "keeper.place", S_IFDIR, false, &k->base.dirfd, err) < 0 ||
        handover_fd(&a->h, "keeper.listen", S_IFSOCK, false, &a->listen_fd, err) < 0 ||
        handover_fd(&a->h, "keeper.program", S_IFREG, false, &a->older, err) < 0)
        return -1;
    return ipc_name(socket, k->name) == 0
               ? 0
               : err_set(err, ERR_TOOL, "keeper.name of the record is no name for a socket");
}

static int read_record(struct adoption *a, struct err *err)
{
    handover_release(&a->h);
    return handover_read(&a->h, a->fd, err) < 0 || find_kind(a, err) < 0 || read_keeper(a, err) < 0 ? -1 : 0;
}

/* ---- taking over ---- */

/* From here on they are this program's own, and nothing else is. */
static void own_descriptors(struct adoption *a)
{
    int fds[HANDOVER_FDS_MAX + 2];
    size_t n = handover_fds(&a->h, fds, HANDOVER_FDS_MAX);
    fds[n++] = a->fd;
    io_close_others(fds, n);
    for (size_t i = 0; i < n; i++)
        io_keep(fds[i], false);
}

/* Where this program can't, the one that was there before goes on; what it gets is the same as this one got.
 * Returns when that can't be run. */
static void go_back(struct adoption *a)
{
    char name[] = "toolbox", command[] = "adopt", last[] = "--last", fd[16];
    char *const argv[] = {name, command, last, fd, NULL};
    int fds[HANDOVER_FDS_MAX];
    size_t n = handover_fds(&a->h, fds, HANDOVER_FDS_MAX);
    snprintf(fd, sizeof fd, "%d", a->fd);
    bool kept = io_keep(a->fd, true) == 0;
    for (size_t i = 0; i < n && kept; i++)
        kept = io_keep(fds[i], true) == 0;
    if (kept && a->program >= 0)
        program_exec(a->program, argv, NULL, 0);
}

/* New clients find this build's socket before those of the older one are turned away. */
static void leave_older_socket(struct adoption *a)
{
    char own[IPC_NAME_MAX];
    int dirfd = a->keeper->base.dirfd;
    if (ipc_name(own, a->keeper->name) == 0 && strcmp(own, a->socket) != 0)
        renameat(dirfd, a->socket, dirfd, a->hidden);
    ipc_refuse_queued(a->listen_fd);
    io_close(&a->listen_fd);
    io_close(&a->older);
    io_close(&a->fd);
    handover_release(&a->h);
}

static int go_on(struct adoption *a, struct err *err)
{
    struct keeper *k = a->keeper;
    if (!k->base.loop && !(k->base.loop = loop_new(err)))
        return -1;
    k->listen_fd = ipc_listen(k->base.dirfd, k->name, err);
    if (k->listen_fd < 0)
        return -1;
    if (a->how->take(k, &a->h, err) == 0)
        return 0;
    ipc_unlink(k->base.dirfd, k->name);
    io_close(&k->listen_fd);
    return -1;
}

/* Until one of the two programs goes on: whatever fails may work a little later, and what has no program is
 * lost. Ends where that has taken too long. */
static void or_go_back(struct adoption *a, const struct err *err)
{
    log_line(LOG_ERROR, "%s can't go on in this build: %s", a->keeper->name, err->msg);
    go_back(a);
    if (a->failures++ == AGAIN_TIMES)
        _exit(EXIT_FAILED);
    usleep(AGAIN_MS * 1000);
}

static _Noreturn void take_over(struct adoption *a)
{
    struct err err;
    struct keeper *k = a->keeper;
    while (code_unpack(CODE_tools, &err) < 0 || read_record(a, &err) < 0)
        or_go_back(a, &err);
    char *title = mem_printf("toolbox %s", k->name);
    own_descriptors(a);
    log_open(k->base.dirfd, false);
    background(&k->base, title, false);
    free(title);
    while (go_on(a, &err) < 0)
        or_go_back(a, &err);
    leave_older_socket(a);
    log_line(LOG_INFO, "%s goes on in build %s", k->name, toolbox_build_id);
    _exit(loop_run(k->base.loop));
}

/* For the keeper, as another process would go on. */
static int check(struct adoption *a)
{
    struct err err;
    if (code_unpack(CODE_tools, &err) == 0 && read_record(a, &err) == 0 &&
        a->how->take(NULL, &a->h, &err) == 0)
        return EXIT_OK;
    printf("%s\n", err.msg);
    stdout_flushed();
    return EXIT_FAILED;
}

/* A descriptor above the standard ones; -1: it is none. */
static int descriptor(const char *text)
{
    char *end;
    long fd = strtol(text, &end, 10);
    return end > text && !*end && fd > 2 && fd <= INT_MAX ? (int)fd : -1;
}

static int adopt_main(int argc, char **argv)
{
    bool checks = argc == 4 && strcmp(argv[1], "--check") == 0;
    bool last = argc == 3 && strcmp(argv[1], "--last") == 0;
    struct adoption a = {.fd = -1, .program = -1};
    if (argc == 3 + checks) {
        a.fd = descriptor(argv[argc - 2 + last]);
        a.program = last ? -1 : descriptor(argv[argc - 1]);
    }
    if (a.fd < 0 || (a.program < 0 && !last))
        return usage_error("adopt", "it is run by 'toolbox upgrade', with the numbers of descriptors");
    a.keeper = mem_zalloc(sizeof *a.keeper);
    a.keeper->base.start_dir = -1;
    if (!checks)
        take_over(&a);
    int status = check(&a);
    handover_release(&a.h);
    free(a.keeper);
    return status;
}

const struct applet adopt_applet = {
    .name = "adopt",
    .summary = "the half of `upgrade` that goes on from where another build was",
    .run = adopt_main,
};
