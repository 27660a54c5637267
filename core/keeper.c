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
#include "mem.h"
#include "title.h"

struct birth {
    int pipe; /* the keeper's word: nothing and end of file: it died; "\0": up; a struct err: why not */
    pid_t pid;
    struct buf word;
    struct loop_source *source;
    keeper_up_fn up;
    void *up_arg;
};

void background(const struct base *base, const char *title)
{
    setsid();
    signal(SIGHUP, SIG_IGN);
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    if (fchdir(base->dirfd) < 0) {
        /* the directory is found through its descriptor; this only keeps no other one busy */
    }
    title_set(title);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; fd <= 2; fd++)
        if (null < 0 || dup2(null, fd) < 0)
            close(fd);
    if (null > 2)
        close(null);
    io_fill_std();
}

static void be_keeper(struct keeper *k, int word, keeper_start_fn start, void *arg)
{
    struct err err = {0};
    int keep[] = {k->base.dirfd, k->base.start_dir, word};
    loop_after_fork(k->base.loop);
    io_close_others(keep, 3);
    char *title MEM_AUTO = mem_printf("toolbox %s", k->name);
    background(&k->base, title);
    k->base.loop = loop_new(&err);
    k->listen_fd = k->base.loop ? ipc_listen(k->base.dirfd, k->name, &err) : -1;
    if (k->listen_fd >= 0 && start(k, arg, &err) == 0) {
        io_write_all(word, "", 1);
        close(word);
        _exit(loop_run(k->base.loop)); /* not exit: what stdio holds is the command's, not ours */
    }
    if (k->listen_fd >= 0)
        ipc_unlink(k->base.dirfd, k->name);
    io_write_all(word, &err, sizeof err);
    _exit(1);
}

static void born(void *arg, int events)
{
    struct birth *b = arg;
    (void)events;
    struct err err;
    if (io_read_all(b->pipe, &b->word) < 0 || b->word.len == 0)
        err_set(&err, ERR_INTERNAL, "the keeper process ended before it was ready");
    else if (b->word.len == sizeof err)
        memcpy(&err, b->word.data, sizeof err);
    bool up = b->word.len == 1;
    loop_remove(b->source);
    close(b->pipe);
    b->up(b->up_arg, up ? b->pid : -1, up ? NULL : &err);
    buf_release(&b->word);
    free(b);
}

static void never_born(void *arg)
{
    struct birth *b = arg;
    b->up(b->up_arg, -1, (struct err *)(void *)b->word.data);
    buf_release(&b->word);
    free(b);
}

void keeper_fork(const struct base *server, const char *name, keeper_start_fn start, void *start_arg,
                 keeper_up_fn up, void *up_arg)
{
    struct birth *b = mem_zalloc(sizeof *b);
    buf_init(&b->word, sizeof(struct err));
    b->up = up;
    b->up_arg = up_arg;
    int ends[2] = {-1, -1};
    if (pipe2(ends, O_CLOEXEC) == 0)
        b->pid = fork();
    if (ends[0] < 0 || b->pid < 0) {
        struct err err;
        err_sys(&err, ERR_TOOL, errno, "cannot start another process");
        buf_add(&b->word, &err, sizeof err);
        io_close(&ends[0]);
        io_close(&ends[1]);
        loop_timer(server->loop, 0, never_born, b);
        return;
    }
    if (b->pid == 0) {
        struct keeper *k = mem_zalloc(sizeof *k);
        k->base = *server;
        snprintf(k->name, sizeof k->name, "%s", name);
        be_keeper(k, ends[1], start, start_arg);
    }
    close(ends[1]);
    b->pipe = ends[0];
    b->source = loop_fd(server->loop, b->pipe, LOOP_READ, born, b);
}
