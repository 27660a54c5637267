/* What takes long, in a process of its own, so that it stalls nobody. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "io.h"
#include "log.h"
#include "mem.h"
#include "server_internal.h"

struct work {
    struct work *next;
    struct server *server;
    pid_t pid;
    int pipe;
    struct buf output;
    struct loop_source *source;
    work_done done;
    void *arg;
};

static _Noreturn void do_work(const struct server *s, work_fn run, void *arg, int out)
{
    int keep[] = {s->base.start_dir, s->base.dirfd, out};
    log_open(-1, false);
    io_close_others(keep, 3);
    if (s->base.start_dir >= 0 && fchdir(s->base.start_dir) < 0 && chdir("/") < 0)
        _exit(1);
    run(arg, out);
    _exit(0);
}

bool server_is_own_process(void *arg, pid_t pid)
{
    const struct server *s = arg;
    const struct work *w = s->works;
    while (w && w->pid != pid)
        w = w->next;
    return w || server_is_own_keeper(arg, pid);
}

static void finish(struct work *w)
{
    struct work **at = &w->server->works;
    while (*at != w)
        at = &(*at)->next;
    *at = w->next;
    loop_remove(w->source);
    close(w->pipe);
    w->done(w->arg, &w->output);
    buf_release(&w->output);
    free(w);
}

static void on_output(void *arg, int events)
{
    struct work *w = arg;
    (void)events;
    buf_reserve(&w->output, 65536);
    ssize_t n = read(w->pipe, w->output.data + w->output.len, 65536);
    if (n > 0) {
        w->output.len += (size_t)n;
        w->output.data[w->output.len] = '\0';
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        finish(w);
    }
}

struct work *server_work(struct server *s, work_fn run, void *run_arg, work_done done, void *arg,
                         struct err *err)
{
    int ends[2];
    pid_t pid = -1;
    if (pipe2(ends, O_CLOEXEC) == 0) {
        pid = loop_fork(s->base.loop);
        if (pid == 0)
            do_work(s, run, run_arg, ends[1]);
        io_close(&ends[1]);
        if (pid < 0)
            io_close(&ends[0]);
    }
    if (pid < 0) {
        err_sys(err, ERR_TOOL, errno, "cannot start another process");
        return NULL;
    }
    struct work *w = mem_zalloc(sizeof *w);
    *w = (struct work){.next = s->works,
                       .server = s,
                       .pid = pid,
                       .pipe = ends[0],
                       .output = BUF_INIT,
                       .done = done,
                       .arg = arg};
    s->works = w;
    io_set_nonblock(w->pipe, true);
    w->source = loop_fd(s->base.loop, w->pipe, LOOP_READ, on_output, w);
    return w;
}

void server_work_end(struct work *w)
{
    kill(w->pid, SIGKILL); /* whatever it is: nobody else has waited for it */
}
