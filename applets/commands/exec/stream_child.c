#include "commands/exec/stream_child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "io.h"
#include "mem.h"
#include "rpc.h"
#include "tool.h"

#define PIECE 65536
#define MOST 8 /* at a time; what is more is done as it comes */

struct stream_child {
    pid_t pid;
    int in;
    bool looks; /* and changes nothing */
    struct loop_source *source;
    struct buf said;
    void (*done)(void *arg, struct buf *answer);
    void *arg;
};

static unsigned running;

static const struct {
    const char *method;
    bool looks;
} slow[] = {{"file_search", true},     {"file_find", true},  {"file_list", true},
            {"file_disk_usage", true}, {"file_copy", false}, {"file_remove", false}};

static int find(const char *method)
{
    for (int i = 0; i < (int)(sizeof slow / sizeof *slow); i++)
        if (strcmp(slow[i].method, method) == 0)
            return i;
    return -1;
}

bool stream_child_is_for(const char *method)
{
    return find(method) >= 0;
}

static void say(void *arg, struct buf *response)
{
    io_write_all(*(int *)arg, buf_str(response), response->len);
}

static void on_said(void *arg, int events)
{
    struct stream_child *c = arg;
    (void)events;
    buf_reserve(&c->said, PIECE);
    ssize_t n = read(c->in, c->said.data + c->said.len, PIECE);
    if (n > 0) {
        c->said.len += (size_t)n;
        c->said.data[c->said.len] = '\0';
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        loop_drop(&c->source);
        c->pid = 0;
        c->done(c->arg, &c->said);
    }
}

/* One that only looks doesn't outlive who asks, nor hold its output; a copy is not left half. */
static _Noreturn void work(struct span request, bool looks, pid_t parent, int out)
{
    if (looks)
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (looks && getppid() != parent)
        _exit(0);
    io_close_others(&out, 1);
    rpc_take(request, tool_find_in_process, NULL, (struct rpc_sink){say, &out});
    _exit(0);
}

struct stream_child *stream_child_start(struct loop *loop, const char *method, struct span request,
                                        void (*done)(void *arg, struct buf *answer), void *arg)
{
    int ends[2];
    if (running >= MOST || pipe2(ends, O_CLOEXEC) < 0)
        return NULL;
    bool looks = slow[find(method)].looks;
    pid_t parent = getpid(), pid = loop_fork(loop);
    if (pid == 0)
        work(request, looks, parent, ends[1]);
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return NULL;
    }
    struct stream_child *c = mem_zalloc(sizeof *c);
    *c = (struct stream_child){
        .pid = pid, .in = ends[0], .looks = looks, .said = BUF_INIT, .done = done, .arg = arg};
    io_set_nonblock(c->in, true);
    c->source = loop_fd(loop, c->in, LOOP_READ, on_said, c);
    running++;
    return c;
}

void stream_child_end(struct stream_child *c)
{
    if (c->pid > 0 && c->looks)
        kill(c->pid, SIGKILL); /* the loop alone waits for children: it is still that one */
    loop_drop(&c->source);
    io_close(&c->in);
    buf_release(&c->said);
    free(c);
    running--;
}
