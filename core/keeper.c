#include "keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "buf.h"
#include "io.h"
#include "mark.h"
#include "mem.h"
#include "spawn.h"
#include "title.h"

enum { UP = 'u', FAILED = 'f' };

struct birth {
    int pipe; /* UP and the keeper's word, or FAILED and a struct err; end of file alone: it died */
    pid_t pid;
    struct buf word;
    struct loop_source *source;
    keeper_up_fn up;
    void *up_arg;
};

static void detach(void)
{
    setsid();
    signal(SIGHUP, SIG_IGN);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; fd <= 2; fd++)
        if (null < 0 || dup2(null, fd) < 0)
            close(fd);
    if (null > 2)
        close(null);
    io_fill_std();
}

/* Nobody else of this user looks into it. Where one who has no right to is its tracer and translates its
 * names (proot), no name could be read any more: so that one can, and the others whom he traces. */
static void hide(void)
{
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    if (access("/", F_OK) < 0 && errno == EFAULT)
        prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
}

void background(const struct base *base, const char *title, bool detached)
{
    spawn_know_signals();
    mark_keeper(mark_of(base->dirfd));
    if (detached)
        detach();
    signal(SIGXFSZ, SIG_IGN); /* a limit on files is an error of the write, not the end of us */
    hide();
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    if (fchdir(base->dirfd) == 0) /* where not, the directory is found through its descriptor all the same */
        ipc_stay_in(base->dirfd);
    title_set(title);
}

static int tell(int fd, char what, const void *data, size_t n)
{
    struct buf text BUF_AUTO = BUF_INIT;
    buf_addc(&text, what);
    buf_add(&text, data, n);
    return io_write_all(fd, text.data, text.len);
}

/* Whom a socket goes to when the keeper leaves: back to the server where that lives. */
static const char *hidden_owner(const struct keeper *k)
{
    return *k->hidden && getppid() == k->server ? k->hidden : k->name;
}

void keeper_hide(struct keeper *k)
{
    ipc_hide(k->base.dirfd, k->name, hidden_owner(k));
}

void keeper_socket_names(const struct keeper *k, char shown[IPC_NAME_MAX], char hidden[1 + IPC_NAME_MAX])
{
    ipc_name(shown, k->name);
    ipc_hidden_name(hidden, hidden_owner(k));
}

/* False: there is to be one, and is none. */
static bool listens(struct keeper *k, const struct pooled_socket *pooled, struct err *err)
{
    k->listen_fd = -1;
    if (*k->name)
        k->listen_fd = ipc_listen(k->base.dirfd, k->name, err);
    if (*k->name || !pooled || socket_pool_enter(pooled) < 0)
        return k->listen_fd >= 0 || !*k->name;
    k->listen_fd = pooled->fd;
    snprintf(k->hidden, sizeof k->hidden, "%s", pooled->hidden);
    return true;
}

static void at_end(const struct keeper *k)
{
    if (k->at_end)
        k->at_end(k->at_end_arg);
}

static void be_keeper(struct keeper *k, const struct pooled_socket *pooled, int word, keeper_start_fn start,
                      void *arg)
{
    struct err err = {0};
    int keep[] = {k->base.dirfd, k->base.start_dir, word, pooled ? pooled->fd : -1};
    io_close_others(keep, sizeof keep / sizeof *keep);
    char *title MEM_AUTO = mem_printf("toolbox %s", *k->name ? k->name : "keeper");
    background(&k->base, title, !k->base.detached);
    k->base.loop = loop_new(&err);
    if (k->base.loop && listens(k, pooled, &err) && start(k, arg, &err) == 0) {
        /* Where the server is gone nobody will know of us, and whoever asked asks again. */
        if (tell(word, UP, k->word, strlen(k->word) + 1) < 0)
            kill(getpid(), SIGTERM);
        close(word);
        int status = loop_run(k->base.loop);
        at_end(k);
        _exit(status); /* not exit: what stdio holds is the command's, not ours */
    }
    at_end(k);
    if (*k->name && *k->hidden)
        keeper_hide(k);
    else if (k->listen_fd >= 0)
        ipc_unlink(k->base.dirfd, k->name);
    struct buf failure BUF_AUTO = BUF_INIT;
    buf_add(&failure, &err, sizeof err);
    buf_add(&failure, k->kind ? k->kind : "", k->kind ? strlen(k->kind) + 1 : 0);
    tell(word, FAILED, failure.data, failure.len);
    _exit(1);
}

const char *keeper_word(const struct buf *message, struct err *err, const char **kind_of_failure)
{
    const size_t failure = 1 + sizeof *err;
    char kind = message->len > 1 ? message->data[0] : 0;
    if (kind == UP && message->data[message->len - 1] == '\0')
        return message->data + 1;
    bool has_kind = message->len > failure && message->data[message->len - 1] == '\0';
    *kind_of_failure = has_kind ? message->data + failure : NULL;
    if (kind != FAILED || err_take(err, message->data + 1, has_kind ? sizeof *err : message->len - 1) < 0)
        err_set(err, ERR_INTERNAL, "the keeper process ended before it was ready");
    return NULL;
}

static void born(void *arg, int events)
{
    struct birth *b = arg;
    (void)events;
    struct err err;
    if (io_read_all(b->pipe, &b->word) < 0)
        buf_truncate(&b->word, 0);
    const char *kind, *word = keeper_word(&b->word, &err, &kind);
    loop_remove(b->source);
    close(b->pipe);
    b->up(b->up_arg, word ? b->pid : -1, word ? word : kind, word ? NULL : &err);
    buf_release(&b->word);
    free(b);
}

pid_t keeper_fork(const struct base *server, const char *name, const struct pooled_socket *pooled,
                  keeper_start_fn start, void *start_arg, keeper_up_fn up, void *up_arg)
{
    int ends[2];
    pid_t pid = -1, self = getpid();
    if (pipe2(ends, O_CLOEXEC) == 0) {
        pid = loop_fork(server->loop);
        if (pid < 0) {
            io_close(&ends[0]);
            io_close(&ends[1]);
        }
    }
    if (pid < 0) {
        struct err err;
        err_sys(&err, ERR_TOOL, errno, "cannot start another process");
        up(up_arg, -1, NULL, &err);
        return -1;
    }
    if (pid == 0) {
        struct keeper *k = mem_zalloc(sizeof *k);
        k->base = *server;
        k->server = self;
        snprintf(k->name, sizeof k->name, "%s", name);
        be_keeper(k, pooled, ends[1], start, start_arg);
    }
    close(ends[1]);
    struct birth *b = mem_zalloc(sizeof *b);
    *b = (struct birth){
        .pipe = ends[0], .pid = pid, .word.max = 2 * sizeof(struct err), .up = up, .up_arg = up_arg};
    b->source = loop_fd(server->loop, b->pipe, LOOP_READ, born, b);
    return pid;
}
