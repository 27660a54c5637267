#include "caller.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "client.h"
#include "io.h"
#include "memory_share.h"

#define BEAT_MS 500
#define REQUEST_MAX (128u << 20)
#define READ_SIZE 65536

static struct caller {
    struct client_watch watch; /* stdout, stdin */
    long long began;           /* when the request was had */
    bool beats, holds, ended;  /* ended: stdin */
    size_t line;               /* bytes in the line of stdin that has begun */
    char first;                /* of them */
} caller = {.watch = {.fds = {{.fd = STDOUT_FILENO}, {.fd = -1}}, .tick_ms = -1}};

/* ---- stdin ---- */

/* What stands behind the request. */
static void take(const char *data, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (data[i] == '\n') {
            caller.holds = caller.holds || caller.line == 0;
            if (caller.line == 1 && caller.first == '-') {
                caller.watch.fds[1].fd = -1;
                caller.holds = false;
            }
            caller.line = 0;
        } else if (caller.line++ == 0) {
            caller.first = data[i];
        }
    }
}

/* Takes what there is of stdin. */
static void read_more(void)
{
    char data[256];
    ssize_t n = read(STDIN_FILENO, data, sizeof data);
    if (n > 0) {
        take(data, (size_t)n);
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        caller.ended = true;
        caller.watch.fds[1].fd = -1;
    }
}

/* Its first line that isn't empty, which is the request; what has come behind it is taken. */
static bool split(struct buf *request, size_t *looked)
{
    size_t blank = strspn(buf_str(request), "\n");
    if (blank > 0 && *looked == 0) {
        caller.holds = true;
        buf_consume(request, blank);
    }
    char *end = request->len > *looked ? memchr(request->data + *looked, '\n', request->len - *looked) : NULL;
    *looked = request->len;
    if (!end)
        return false;
    size_t n = (size_t)(end - request->data);
    take(end + 1, request->len - n - 1);
    buf_truncate(request, n);
    return true;
}

static int read_request(struct buf *request)
{
    size_t looked = 0;
    struct memory_share share = {0};
    while (!split(request, &looked)) {
        request->max = memory_share(&share, request->len + READ_SIZE, REQUEST_MAX);
        if (buf_reserve(request, READ_SIZE) < 0)
            return errno = EFBIG, -1;
        ssize_t n = read(STDIN_FILENO, request->data + request->len, READ_SIZE);
        if (n == 0)
            return 0; /* its end is the request's */
        if (n < 0 && errno == EAGAIN)
            poll(&(struct pollfd){.fd = STDIN_FILENO, .events = POLLIN}, 1, -1);
        else if (n < 0 && errno != EINTR)
            return -1;
        if (n > 0) {
            request->len += (size_t)n;
            request->data[request->len] = '\0';
        }
    }
    return 0;
}

/* ---- the wait ---- */

static bool beat_is_refused(void)
{
    struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
    return poll(&out, 1, 0) > 0 && write(STDOUT_FILENO, " ", 1) < 0 && errno != EAGAIN && errno != EINTR;
}

static bool is_gone(struct client_watch *w)
{
    if (w->fds[0].revents & (POLLERR | POLLHUP))
        return true;
    w->fds[0].fd = w->fds[0].revents ? -1 : w->fds[0].fd; /* says nothing */
    if (w->fds[1].revents)
        read_more();
    if (caller.ended && (caller.holds || now_ms() - caller.began > BEAT_MS))
        return true;
    caller.ended = false; /* it was the request's */
    return caller.beats && beat_is_refused();
}

void caller_watch(void)
{
    caller.watch.gone = is_gone;
    client_watch(&caller.watch);
}

int caller_detect(bool from_stdin, struct buf *request)
{
    caller.watch.fds[1] = (struct pollfd){.fd = STDIN_FILENO, .events = POLLIN};
    if (from_stdin && read_request(request) < 0)
        return -1;
    caller.watch.tick_ms = BEAT_MS;
    caller.beats = true;
    caller.began = now_ms();
    caller_watch();
    return 0;
}

bool caller_confirmed(void)
{
    struct pollfd *fds = caller.watch.fds;
    if (fds[1].fd >= 0 && !caller.holds && io_is_readable(STDIN_FILENO))
        read_more();
    if (!caller.holds)
        return true;
    caller.holds = false; /* until it says so again */
    while (fds[1].fd >= 0 && !caller.holds) {
        if (poll(fds, 2, -1) < 0)
            continue;
        if (fds[0].revents & (POLLERR | POLLHUP))
            return false;
        if (fds[1].revents)
            read_more();
    }
    return caller.holds;
}
