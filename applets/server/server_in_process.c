/* In-process methods for those who ask the server (curl): each call in a process of its own. */
#include <errno.h>
#include <fcntl.h>
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
    struct rpc_call *call; /* NULL: the client has gone */
    int pipe;
    struct buf answer;
    struct loop_source *source;
};

static void put_answer(void *arg, struct buf *response)
{
    io_write_all(*(int *)arg, response->data, response->len);
}

static _Noreturn void do_work(struct server *s, struct span request, int out)
{
    int keep[] = {s->base.start_dir, out};
    log_open(-1, false);
    io_close_others(keep, 2);
    if (s->base.start_dir >= 0 && fchdir(s->base.start_dir) < 0 && chdir("/") < 0)
        _exit(1);
    rpc_take(request, tool_find_in_process, NULL, (struct rpc_sink){put_answer, &out});
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
    struct err err;
    if (w->call && w->answer.len > 0) {
        rpc_response(w->call, span_of(&w->answer));
    } else if (w->call) {
        err_set(&err, ERR_INTERNAL, "the process that did the work ended without an answer");
        rpc_fail(w->call, &err);
    }
    buf_release(&w->answer);
    free(w);
}

static void on_output(void *arg, int events)
{
    struct work *w = arg;
    (void)events;
    buf_reserve(&w->answer, 65536);
    ssize_t n = read(w->pipe, w->answer.data + w->answer.len, 65536);
    if (n > 0) {
        w->answer.len += (size_t)n;
        w->answer.data[w->answer.len] = '\0';
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        finish(w);
    }
}

static void on_abandon(void *arg)
{
    ((struct work *)arg)->call = NULL; /* an edit that has begun is finished */
}

void server_in_process(struct rpc_call *call, struct span params, void *ctx)
{
    struct server *s = ctx;
    (void)params;
    int ends[2];
    pid_t pid = -1;
    if (pipe2(ends, O_CLOEXEC) == 0) {
        pid = loop_fork(s->base.loop);
        if (pid == 0)
            do_work(s, rpc_request_text(call), ends[1]);
        io_close(&ends[1]);
        if (pid < 0)
            io_close(&ends[0]);
    }
    if (pid < 0) {
        struct err err;
        err_sys(&err, ERR_TOOL, errno, "cannot start another process");
        rpc_fail(call, &err);
        return;
    }
    struct work *w = mem_zalloc(sizeof *w);
    *w = (struct work){
        .next = s->works, .server = s, .pid = pid, .call = call, .pipe = ends[0], .answer = BUF_INIT};
    s->works = w;
    io_set_nonblock(w->pipe, true);
    w->source = loop_fd(s->base.loop, w->pipe, LOOP_READ, on_output, w);
    rpc_on_abandon(call, on_abandon, w);
}
