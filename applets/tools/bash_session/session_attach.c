#include "session_attach.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "io.h"
#include "ipc.h"
#include "mem.h"

#define WAIT_MS 5000
#define BEHIND_MAX (1u << 20)     /* bytes that a viewer may be behind */
#define RECENT_MAX ((size_t)8192) /* bytes that a new viewer sees of what was before */

struct viewer {
    struct viewer *next;
    struct viewers *of;
    int fd;
    struct loop_source *source;
    struct buf out, in;
    bool entered; /* what it has sent is being dealt with, and is needed until that is done */
    bool gone;
    bool dismissed; /* it leaves once it has been shown all */
};

/* ---- one viewer ---- */

static void viewer_free(struct viewer *v)
{
    buf_release(&v->out);
    buf_release(&v->in);
    free(v);
}

/* It may happen from inside: what a viewer types is shown to all of them. */
static void leave(struct viewer *v)
{
    struct viewers *of = v->of;
    struct viewer **at = &of->first;
    while (*at != v)
        at = &(*at)->next;
    *at = v->next;
    loop_remove(v->source);
    close(v->fd);
    v->gone = true;
    if (!v->entered)
        viewer_free(v);
    if (!of->first)
        of->owner->left(of->arg);
}

/* -1: it has left. */
static int flush(struct viewer *v)
{
    while (v->out.len > 0) {
        ssize_t n = send(v->fd, v->out.data, v->out.len, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR || errno == ENOMEM || errno == ENOBUFS))
            break;
        if (n < 0) {
            leave(v);
            return -1;
        }
        buf_consume(&v->out, (size_t)n);
    }
    if (v->dismissed && v->out.len == 0) {
        leave(v);
        return -1;
    }
    loop_fd_events(v->source, v->out.len > 0 ? LOOP_READ | LOOP_WRITE : LOOP_READ);
    return 0;
}

static void show_one(struct viewer *v, const char *data, size_t n)
{
    if (buf_add(&v->out, data, n) < 0)
        leave(v);
    else
        flush(v);
}

void viewers_show(struct viewers *of, const char *data, size_t n)
{
    buf_add(&of->recent, data, n);
    if (of->recent.len > 4 * RECENT_MAX)
        buf_consume(&of->recent, of->recent.len - RECENT_MAX);
    for (struct viewer *v = of->first, *next; v; v = next) {
        next = v->next;
        show_one(v, data, n);
    }
}

void viewers_dismiss(struct viewers *of)
{
    for (struct viewer *v = of->first, *next; v; v = next) {
        next = v->next;
        v->dismissed = true;
        flush(v);
    }
}

static void take_frame(struct viewers *of, char type, const unsigned char *data, size_t n)
{
    if (type == ATTACH_SIZE && n == 4)
        of->owner->sized(of->arg, (unsigned short)(data[0] << 8 | data[1]),
                         (unsigned short)(data[2] << 8 | data[3]));
    else if (type == ATTACH_INPUT)
        of->owner->typed(of->arg, (const char *)data, n);
}

static void take_frames(struct viewer *v)
{
    const unsigned char *data = (const unsigned char *)v->in.data;
    size_t at = 0;
    while (!v->gone && v->in.len - at >= 3) {
        size_t n = (size_t)(data[at + 1] << 8 | data[at + 2]);
        if (v->in.len - at < 3 + n)
            break;
        take_frame(v->of, (char)data[at], data + at + 3, n);
        at += 3 + n;
    }
    buf_consume(&v->in, at);
}

static void read_viewer(struct viewer *v)
{
    char data[4096];
    ssize_t n = recv(v->fd, data, sizeof data, MSG_DONTWAIT);
    if (n > 0 && buf_add(&v->in, data, (size_t)n) == 0)
        take_frames(v);
    else if (n >= 0 || (errno != EAGAIN && errno != EINTR && errno != ENOMEM))
        leave(v);
}

static void on_viewer(void *arg, int events)
{
    struct viewer *v = arg;
    if ((events & LOOP_WRITE) && flush(v) < 0)
        return;
    v->entered = true;
    read_viewer(v);
    v->entered = false;
    if (v->gone)
        viewer_free(v);
}

static void enter(struct viewers *of, int fd)
{
    struct viewer *v = mem_zalloc(sizeof *v);
    *v = (struct viewer){.next = of->first, .of = of, .fd = fd, .out.max = BEHIND_MAX, .in.max = 1 << 18};
    of->first = v;
    v->source = loop_fd(of->loop, fd, LOOP_READ, on_viewer, v);
    show_one(v, buf_str(&of->recent), of->recent.len);
}

/* ---- the way in: a socket for one ---- */

struct invitation {
    struct viewers *of;
    int dirfd, fd;
    char name[IPC_NAME_MAX];
    struct loop_source *source, *timer;
};

static void withdraw(void *arg)
{
    struct invitation *i = arg;
    ipc_unlink(i->dirfd, i->name);
    loop_remove(i->source);
    loop_remove(i->timer);
    close(i->fd);
    free(i);
}

static void on_guest(void *arg, int events)
{
    struct invitation *i = arg;
    (void)events;
    pid_t pid;
    uid_t uid;
    int fd = accept4(i->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return;
    if (ipc_peer(fd, &pid, &uid) < 0 || (uid != 0 && uid != geteuid())) {
        close(fd);
        return;
    }
    enter(i->of, fd);
    withdraw(i);
}

int viewers_invite(struct viewers *of, int dirfd, char *name, size_t size, struct err *err)
{
    unsigned long long number;
    if (getrandom(&number, sizeof number, 0) < 0)
        number = (unsigned long long)now_ms();
    struct invitation *i = mem_zalloc(sizeof *i);
    *i = (struct invitation){.of = of, .dirfd = dirfd};
    snprintf(i->name, sizeof i->name, IPC_TRANSIENT "%016llx", number);
    i->fd = ipc_listen(dirfd, i->name, err);
    if (i->fd < 0) {
        free(i);
        return -1;
    }
    i->source = loop_fd(of->loop, i->fd, LOOP_READ, on_guest, i);
    i->timer = loop_timer(of->loop, WAIT_MS, withdraw, i);
    snprintf(name, size, "%s", i->name);
    return 0;
}
