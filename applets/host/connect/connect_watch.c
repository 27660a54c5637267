#include "host/connect/connect_watch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "buf.h"
#include "host/inject/engine.h"
#include "io.h"
#include "mem.h"

#define KEPT_MAX 16384 /* of what was said: more than one event */

struct connect_watch {
    int fd;
    struct loop_source *source;
    char *names[2]; /* as they stand in an event */
    struct buf said;
    void (*told)(bool lost);
};

static int ask(int fd, long long since_ms)
{
    char *text MEM_AUTO =
        mem_printf("GET /events?since=%lld.%03lld&filters=%%7B%%22type%%22%%3A%%5B%%22container"
                   "%%22%%5D%%2C%%22event%%22%%3A%%5B%%22rename%%22%%5D%%7D HTTP/1.1\r\n"
                   "Host: docker\r\n\r\n",
                   since_ms / 1000, since_ms % 1000);
    return io_write_all(fd, text, strlen(text));
}

/* ---- what it says ---- */

static void on_said(void *arg, int events)
{
    static const char good[] = "HTTP/1.1 200";
    struct connect_watch *w = arg;
    (void)events;
    if (w->said.len > KEPT_MAX)
        buf_consume(&w->said, w->said.len - KEPT_MAX / 2);
    buf_reserve(&w->said, KEPT_MAX);
    ssize_t n = read(w->fd, w->said.data + w->said.len, KEPT_MAX);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    w->said.len += n > 0 ? (size_t)n : 0;
    bool refused = w->said.len >= sizeof good - 1 && strncmp(w->said.data, "HTTP/", 5) == 0 &&
                   memcmp(w->said.data, good, sizeof good - 1) != 0;
    bool renamed = false;
    for (int i = 0; i < 2 && !refused; i++)
        renamed = renamed || memmem(w->said.data, w->said.len, w->names[i], strlen(w->names[i]));
    if (n > 0 && !refused && !renamed)
        return;
    loop_drop(&w->source);
    if (!refused)
        w->told(!renamed);
}

struct connect_watch *connect_watch_begin(struct loop *loop, const char *container, long long since_ms,
                                          void (*told)(bool lost))
{
    const char *path = engine_socket("docker", true);
    int fd = path ? engine_dial(path) : -1;
    if (fd < 0 || ask(fd, since_ms) < 0) {
        io_close(&fd);
        return NULL;
    }
    struct connect_watch *w = mem_zalloc(sizeof *w);
    *w = (struct connect_watch){.fd = fd,
                                .names = {mem_printf("\"%s\"", container), mem_printf("\"/%s\"", container)},
                                .said = BUF_INIT,
                                .told = told};
    w->source = loop_fd(loop, fd, LOOP_READ, on_said, w);
    return w;
}

void connect_watch_end(struct connect_watch **watch)
{
    struct connect_watch *w = *watch;
    *watch = NULL;
    if (!w)
        return;
    loop_drop(&w->source);
    close(w->fd);
    free(w->names[0]);
    free(w->names[1]);
    buf_release(&w->said);
    free(w);
}
