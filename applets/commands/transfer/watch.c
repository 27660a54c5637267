#include "commands/transfer/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "io.h"
#include "mem.h"

#define QUIET_MS 30 /* nothing more has come for so long */
#define LATEST_MS 300
#define EVENTS                                                                                               \
    (IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB |          \
     IN_ONLYDIR | IN_EXCL_UNLINK)

struct watch {
    int fd;
    char **paths; /* by the numbers of their watches */
    size_t n_paths;
    struct change {
        char *path;
        bool whole;
    } * changes;
    size_t n, room;
    bool lost;
};

struct watch *watch_new(void)
{
    int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (fd < 0)
        return NULL;
    struct watch *w = mem_zalloc(sizeof *w);
    w->fd = fd;
    return w;
}

static void forget(struct watch *w)
{
    for (size_t i = 0; i < w->n; i++)
        free(w->changes[i].path);
    w->n = 0;
}

void watch_free(struct watch *w)
{
    forget(w);
    for (size_t i = 0; i < w->n_paths; i++)
        free(w->paths[i]);
    free(w->paths);
    free(w->changes);
    io_close(&w->fd);
    free(w);
}

int watch_add(struct watch *w, int fd, const char *path)
{
    char name[40];
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    int number = inotify_add_watch(w->fd, name, EVENTS);
    if (number < 0)
        return -1;
    if ((size_t)number >= w->n_paths) {
        size_t n = 2 * (size_t)number + 64;
        w->paths = mem_realloc(w->paths, n * sizeof *w->paths);
        memset(w->paths + w->n_paths, 0, (n - w->n_paths) * sizeof *w->paths);
        w->n_paths = n;
    }
    free(w->paths[number]);
    w->paths[number] = mem_strdup(path);
    return 0;
}

static void note(struct watch *w, const struct inotify_event *e)
{
    if (e->mask & IN_Q_OVERFLOW)
        w->lost = true;
    if (e->wd < 0 || (size_t)e->wd >= w->n_paths || !w->paths[e->wd] || e->len == 0)
        return;
    const char *above = w->paths[e->wd];
    if (w->n == w->room)
        w->changes = mem_realloc(w->changes, (w->room = w->room ? 2 * w->room : 64) * sizeof *w->changes);
    w->changes[w->n++] =
        (struct change){strcmp(above, ".") == 0 ? mem_strdup(e->name) : mem_printf("%s/%s", above, e->name),
                        e->mask & IN_ISDIR && e->mask & (IN_CREATE | IN_MOVED_TO)};
}

static void read_events(struct watch *w)
{
    _Alignas(struct inotify_event) static char data[16384];
    ssize_t n;
    while ((n = read(w->fd, data, sizeof data)) > 0)
        for (ssize_t at = 0; at < n;) {
            const struct inotify_event *e = (const struct inotify_event *)(const void *)(data + at);
            note(w, e);
            at += (ssize_t)(sizeof *e + e->len);
        }
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct change *)a)->path, ((const struct change *)b)->path);
}

/* Each path once. */
static void tell(struct watch *w, void (*changed)(void *arg, const char *path, bool whole), void *arg)
{
    if (w->n > 0)
        qsort(w->changes, w->n, sizeof *w->changes, by_path);
    for (size_t i = 0; i < w->n;) {
        size_t end = i;
        bool whole = false;
        for (; end < w->n && strcmp(w->changes[end].path, w->changes[i].path) == 0; end++)
            whole = whole || w->changes[end].whole;
        changed(arg, w->changes[i].path, whole);
        i = end;
    }
    forget(w);
}

int watch_wait(struct watch *w, int until, void (*changed)(void *arg, const char *path, bool whole),
               void *arg)
{
    struct pollfd p[2] = {{.fd = w->fd, .events = POLLIN}, {.fd = until}};
    while (poll(p, 2, -1) < 0 && errno == EINTR)
        continue;
    for (long long begun = now_ms(); p[0].revents && now_ms() - begun < LATEST_MS;) {
        read_events(w);
        if (poll(p, 1, QUIET_MS) <= 0)
            break;
    }
    tell(w, changed, arg);
    return w->lost ? 1 : p[1].revents ? -1 : 0;
}
