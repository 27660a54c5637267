#include "session_attach.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include "io.h"
#include "ipc.h"
#include "mem.h"
#include "session_internal.h"

#define WAIT_MS 5000
#define BEHIND_MAX (1u << 20)     /* bytes that a viewer may be behind */
#define RECENT_MAX ((size_t)8192) /* bytes that a new viewer sees of what was before */

struct viewer {
    struct viewer *next;
    struct session *session;
    int fd;
    struct loop_source *source;
    struct buf out, in;
    bool entered; /* what it has sent is being dealt with, and is needed until that is done */
    bool gone;
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
    struct session *s = v->session;
    struct viewer **at = &s->viewers;
    while (*at != v)
        at = &(*at)->next;
    *at = v->next;
    loop_remove(v->source);
    close(v->fd);
    v->gone = true;
    if (!v->entered)
        viewer_free(v);
    if (!s->viewers && s->shell) /* programs get the size back that their calls rely on */
        pty_resize(&s->pty, s->options.rows, s->options.cols);
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

void session_show(struct session *s, const char *data, size_t n)
{
    buf_add(&s->recent, data, n);
    if (s->recent.len > 4 * RECENT_MAX)
        buf_consume(&s->recent, s->recent.len - RECENT_MAX);
    for (struct viewer *v = s->viewers, *next; v; v = next) {
        next = v->next;
        show_one(v, data, n);
    }
}

/* The session's terminal doesn't echo, for the sake of those who call; people want to see what they type. Not
 * what goes to a program that draws for itself. */
static void echo(struct session *s, const char *data, size_t n)
{
    struct termios t;
    struct buf text BUF_AUTO = BUF_INIT;
    bool lines = tcgetattr(s->pty.slave, &t) == 0 && (t.c_lflag & ICANON);
    if (!lines && session_look(s, false) != WAITING_SHELL)
        return;
    for (size_t i = 0; i < n; i++) {
        if (data[i] == '\r' || data[i] == '\n')
            buf_adds(&text, "\r\n");
        else if (data[i] == '\177' || data[i] == '\b')
            buf_adds(&text, "\b \b");
        else if ((unsigned char)data[i] >= 0x20)
            buf_addc(&text, data[i]);
    }
    session_show(s, text.data, text.len);
}

static void take_frame(struct session *s, char type, const unsigned char *data, size_t n)
{
    if (!s->shell)
        return;
    if (type == ATTACH_SIZE && n == 4) {
        pty_resize(&s->pty, (unsigned short)(data[0] << 8 | data[1]),
                   (unsigned short)(data[2] << 8 | data[3]));
    } else if (type == ATTACH_INPUT) {
        echo(s, (const char *)data, n);
        session_run_typed(s);
        s->prompt_after_input = false;
        input_add(&s->input, &s->pty, (const char *)data, n, NULL);
        loop_timer_set(s->tick, 0);
    }
}

static void take_frames(struct viewer *v)
{
    const unsigned char *data = (const unsigned char *)v->in.data;
    size_t at = 0;
    while (!v->gone && v->in.len - at >= 3) {
        size_t n = (size_t)(data[at + 1] << 8 | data[at + 2]);
        if (v->in.len - at < 3 + n)
            break;
        take_frame(v->session, (char)data[at], data + at + 3, n);
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

static void enter(struct session *s, int fd)
{
    struct viewer *v = mem_zalloc(sizeof *v);
    *v =
        (struct viewer){.next = s->viewers, .session = s, .fd = fd, .out.max = BEHIND_MAX, .in.max = 1 << 18};
    s->viewers = v;
    v->source = loop_fd(s->loop, fd, LOOP_READ, on_viewer, v);
    show_one(v, buf_str(&s->recent), s->recent.len);
}

/* ---- the way in: a socket for one ---- */

struct invitation {
    struct session *session;
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
    enter(i->session, fd);
    withdraw(i);
}

int session_attach(struct session *s, int dirfd, char *name, size_t size, struct err *err)
{
    unsigned long long number;
    if (getrandom(&number, sizeof number, 0) < 0)
        number = (unsigned long long)now_ms();
    struct invitation *i = mem_zalloc(sizeof *i);
    *i = (struct invitation){.session = s, .dirfd = dirfd};
    snprintf(i->name, sizeof i->name, IPC_TRANSIENT "%016llx", number);
    i->fd = ipc_listen(dirfd, i->name, err);
    if (i->fd < 0) {
        free(i);
        return -1;
    }
    i->source = loop_fd(s->loop, i->fd, LOOP_READ, on_guest, i);
    i->timer = loop_timer(s->loop, WAIT_MS, withdraw, i);
    snprintf(name, size, "%s", i->name);
    return 0;
}
