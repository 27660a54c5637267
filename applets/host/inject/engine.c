#include "host/inject/engine.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "http_response.h"
#include "io.h"
#include "json.h"
#include "mem.h"
#include "spawn.h"
#include "utf8.h"

enum {
    STEP = 65536,
    STDERR_FRAME = 2,
    STATUS_TRIES = 200, /* ten milliseconds each, for one that has closed its output and goes on */
    NOT_DONE = -1,
};

struct engine_exec {
    const char *user, *name; /* user NULL: the container's */
    char *const *command;
    const char *socket;
};

/* ---- whether it can be done ---- */

/* Whether the client goes where it goes by default: 1; 0: it has been told to talk to another engine; -1:
 * what it has been told can't be read. */
static int context_is_default(void)
{
    const char *named = getenv("DOCKER_CONTEXT"), *dir = getenv("DOCKER_CONFIG"), *home = getenv("HOME");
    char *path MEM_AUTO = mem_printf("%s%s/config.json", dir ? dir : home ? home : "", dir ? "" : "/.docker");
    struct buf text BUF_AUTO = {.max = 1u << 20};
    struct span context;
    if (named && *named)
        return strcmp(named, "default") == 0;
    if (io_read_file(AT_FDCWD, path, &text) < 0)
        return errno == ENOENT || errno == ENOTDIR ? 1 : -1;
    if (json_check(span_of(&text), NULL) < 0 || json_kind(span_of(&text)) != JSON_OBJECT)
        return -1;
    return !json_member(span_of(&text), "currentContext", &context, NULL) || json_string_is(context, "") ||
           json_string_is(context, "default");
}

const char *engine_socket(const char *program, bool guess)
{
    static const char scheme[] = "unix://";
    bool docker = strcmp(program, "docker") == 0;
    const char *host = docker                           ? getenv("DOCKER_HOST")
                       : strcmp(program, "podman") == 0 ? getenv("CONTAINER_HOST")
                                                        : NULL;
    if (host && *host)
        return strncmp(host, scheme, sizeof scheme - 1) == 0 ? host + sizeof scheme - 1 : NULL;
    int by_default = docker ? context_is_default() : 0;
    return by_default > 0 || (guess && by_default < 0) ? "/var/run/docker.sock" : NULL;
}

int engine_dial(const char *path)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof at.sun_path)
        return -1;
    memcpy(at.sun_path, path, strlen(path));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&at, sizeof at) < 0)
        io_close(&fd);
    return fd;
}

static bool is_plain(const char *name)
{
    return name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")] == '\0';
}

static bool takes(char *const *argv, struct engine_exec *e)
{
    if (!argv[0] || !argv[1] || strcmp(argv[1], "exec") != 0 || !argv[2] || strcmp(argv[2], "-i") != 0)
        return false;
    char *const *at = argv + 3;
    if (*at && strcmp(*at, "-u") == 0 && at[1]) {
        e->user = at[1];
        at += 2;
    }
    if (!*at || **at == '-' || !is_plain(*at) || !at[1])
        return false;
    e->name = *at;
    e->command = at + 1;
    for (at = argv; *at; at++)
        if (!utf8_is_valid(*at, strlen(*at)))
            return false; /* JSON can't say it */
    return (e->socket = engine_socket(argv[0], false)) != NULL;
}

/* ---- requests ---- */

static bool ask(int fd, const char *method, const char *path, const struct buf *body)
{
    struct buf text BUF_AUTO = BUF_INIT;
    buf_addf(
        &text,
        "%s %s HTTP/1.1\r\nHost: engine\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n%s\r\n%s",
        method, path, body->len, strstr(path, "/start") ? "Connection: Upgrade\r\nUpgrade: tcp\r\n" : "",
        buf_str(body));
    return io_write_all(fd, text.data, text.len) == 0;
}

static int keep(void *arg, const char *data, size_t n, struct err *err)
{
    return buf_add(arg, data, n) < 0 ? err_set(err, ERR_TOOL, "too long") : 0;
}

/* The member of the object that is answered, in *value. */
static bool answer(int fd, const char *member, struct buf *text, struct span *value)
{
    struct http_response r;
    struct err err;
    char data[4096];
    ssize_t n = 1;
    http_response_init(&r);
    r.body = keep;
    r.arg = text;
    while (r.state != RESPONSE_COMPLETE && n > 0) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        poll(&p, 1, -1);
        n = read(fd, data, sizeof data);
        if (n > 0 && http_response_feed(&r, data, (size_t)n, &err) < 0)
            n = 0;
    }
    bool whole = r.state == RESPONSE_COMPLETE && r.status / 100 == 2;
    http_response_release(&r);
    return whole && json_check(span_of(text), NULL) == 0 && json_kind(span_of(text)) == JSON_OBJECT &&
           json_member(span_of(text), member, value, NULL);
}

static bool create(int fd, const struct engine_exec *e, struct buf *id)
{
    struct buf body BUF_AUTO = BUF_INIT;
    struct buf text BUF_AUTO = {.max = STEP};
    struct span value;
    char *path MEM_AUTO = mem_printf("/containers/%s/exec", e->name);
    buf_adds(&body, "{\"AttachStdin\":true,\"AttachStdout\":true,\"AttachStderr\":true,\"Tty\":false");
    if (e->user)
        json_member_string(&body, "User", e->user);
    json_key(&body, "Cmd");
    buf_addc(&body, '[');
    for (char *const *word = e->command; *word; word++) {
        buf_adds(&body, word > e->command ? "," : "");
        json_puts(&body, *word);
    }
    buf_adds(&body, "]}");
    return ask(fd, "POST", path, &body) && answer(fd, "Id", &text, &value) && json_string_text(value, id) &&
           id->len > 0 && is_plain(id->data);
}

/* Its bytes follow. */
static bool start(int fd, const struct buf *id)
{
    struct buf body BUF_AUTO = BUF_INIT;
    char *path MEM_AUTO = mem_printf("/exec/%s/start", id->data);
    char head[4096];
    size_t n = 0;
    buf_adds(&body, "{\"Detach\":false,\"Tty\":false}");
    if (!ask(fd, "POST", path, &body))
        return false;
    while (n < sizeof head && (n < 4 || memcmp(head + n - 4, "\r\n\r\n", 4) != 0)) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        poll(&p, 1, -1);
        ssize_t got = read(fd, head + n, 1);
        if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
            return false;
        n += got > 0 ? 1 : 0;
    }
    return n > 12 && (memcmp(head + 8, " 101", 4) == 0 || memcmp(head + 8, " 200", 4) == 0);
}

static int status_of(const struct engine_exec *e, const struct buf *id)
{
    char *path MEM_AUTO = mem_printf("/exec/%s/json", id->data);
    struct buf none = BUF_INIT;
    for (int i = 0; i < STATUS_TRIES; i++, usleep(10000)) {
        struct buf text BUF_AUTO = {.max = 1u << 20};
        struct span value;
        int fd FD_AUTO = engine_dial(e->socket);
        if (fd >= 0 && ask(fd, "GET", path, &none) && answer(fd, "ExitCode", &text, &value) &&
            json_kind(value) == JSON_NUMBER)
            return (int)strtol(value.s, NULL, 10) & 255;
    }
    return 125;
}

/* ---- bytes ---- */

struct pipe {
    char data[STEP];
    size_t n, at; /* what is there from `at` on */
};

size_t engine_frame_bytes(struct engine_frames *f, const char *data, size_t *at, size_t n)
{
    while (f->left == 0 && *at < n) {
        f->head[f->has++] = data[(*at)++];
        if (f->has < ENGINE_FRAME_HEAD)
            continue;
        const unsigned char *h = (const unsigned char *)f->head;
        f->left = (size_t)h[4] << 24 | (size_t)h[5] << 16 | (size_t)h[6] << 8 | h[7];
        f->to = h[0] == STDERR_FRAME ? STDERR_FILENO : STDOUT_FILENO;
        f->has = 0;
    }
    return n - *at < f->left ? n - *at : f->left;
}

/* How many bytes of what has come are to be written now. */
static size_t next_bytes(struct engine_frames *f, struct pipe *p)
{
    return engine_frame_bytes(f, p->data, &p->at, p->n);
}

static bool may_again(void)
{
    return errno == EAGAIN || errno == EINTR;
}

/* Stdin into the engine. */
static void pump_in(int fd, struct pipe *in, bool *open, short stdin_ready)
{
    if (in->at == in->n && stdin_ready) {
        ssize_t n = read(STDIN_FILENO, in->data, STEP);
        in->at = 0;
        in->n = n > 0 ? (size_t)n : 0;
        if (n == 0 || (n < 0 && !may_again())) {
            *open = false;
            shutdown(fd, SHUT_WR);
        }
    }
    if (in->at < in->n) {
        ssize_t n = send(fd, in->data + in->at, in->n - in->at, MSG_NOSIGNAL);
        if (n < 0 && (errno == ENOMEM || errno == ENOBUFS))
            usleep(10000);              /* none of it may be lost */
        else if (n < 0 && !may_again()) /* nobody reads it any more: how it has ended is told soon */
            in->at = in->n;
        in->at += n > 0 ? (size_t)n : 0;
    }
}

/* False: the engine has no more. */
static bool pump_out(int fd, struct pipe *out, struct engine_frames *f, short ready)
{
    size_t n = next_bytes(f, out);
    if (n == 0 && ready) {
        ssize_t got = read(fd, out->data, STEP);
        if (got == 0 || (got < 0 && !may_again()))
            return false;
        out->at = 0;
        out->n = got > 0 ? (size_t)got : 0;
        n = next_bytes(f, out);
    }
    ssize_t written = n > 0 ? write(f->to, out->data + out->at, n) : 0;
    if (written < 0 && !may_again())
        _exit(1);
    out->at += written > 0 ? (size_t)written : 0;
    f->left -= written > 0 ? (size_t)written : 0;
    return true;
}

static void pump(int fd)
{
    static MEM_LARGE struct pipe in, out;
    struct engine_frames f = {.to = STDOUT_FILENO};
    bool open = true;
    for (int i = 0; i < 3; i++)
        io_set_nonblock(i, true);
    for (;;) {
        size_t writes = next_bytes(&f, &out);
        struct pollfd p[] = {
            {.fd = open && in.at == in.n ? STDIN_FILENO : -1, .events = POLLIN},
            {.fd = fd, .events = (short)((writes ? 0 : POLLIN) | (in.at < in.n ? POLLOUT : 0))},
            {.fd = writes ? f.to : -1, .events = POLLOUT},
        };
        if (p[1].events == 0)
            p[1].fd = -1; /* its end would be told for ever */
        if (poll(p, 3, -1) < 0)
            continue;
        if (open)
            pump_in(fd, &in, &open, p[0].revents);
        if (!pump_out(fd, &out, &f, p[1].revents & (POLLIN | POLLHUP | POLLERR)))
            return;
    }
}

/* NOT_DONE: nothing of it was. up >= 0: that is told there, and the rest is another one's. */
static int run(const struct engine_exec *e, int fd, int up)
{
    struct buf id BUF_AUTO = BUF_INIT;
    if (!create(fd, e, &id) || !start(fd, &id))
        return NOT_DONE;
    if (up >= 0)
        return io_write_all(up, "", 1);
    pump(fd);
    return status_of(e, &id);
}

static _Noreturn void child(int start_dir, char *const *argv, const struct engine_exec *e, int socket, int up,
                            const int fds[3])
{
    setsid();
    spawn_reset_signals();
    for (int i = 0; i < 3; i++)
        while (dup2(fds[i], i) < 0 && errno == EINTR)
            ;
    socket = fcntl(socket, F_DUPFD_CLOEXEC, 3);
    int keep[] = {socket, start_dir, up};
    io_close_others(keep, 3);
    int status = run(e, socket, up);
    if (status != NOT_DONE)
        _exit(status);
    for (int i = 0; i < 3; i++)
        io_set_nonblock(i, false);
    if (start_dir >= 0 && fchdir(start_dir) < 0)
        _exit(125);
    execvp(argv[0], argv);
    struct err err;
    err_sys(&err, ERR_TOOL, errno, "%s", argv[0]);
    io_write_all(STDERR_FILENO, err.msg, strlen(err.msg));
    _exit(125);
}

pid_t engine_start(int start_dir, char *const *argv, const int fds[3], struct engine_direct *direct,
                   const char **over)
{
    struct engine_exec e = {0};
    int fd FD_AUTO = takes(argv, &e) ? engine_dial(e.socket) : -1;
    int up[1][2] = {{-1, -1}};
    sigset_t all, before;
    if (fd >= 0 && direct && io_pipes(up, 1) < 0)
        return -1;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before); /* none is ours in the child */
    pid_t pid = fd < 0 ? -1 : fork();
    if (pid == 0)
        child(start_dir, argv, &e, fd, up[0][1], fds);
    sigprocmask(SIG_SETMASK, &before, NULL);
    io_close(&up[0][1]);
    if (pid > 0 && direct) {
        *direct = (struct engine_direct){up[0][0], fd};
        /* FD_AUTO reads it. NOLINTNEXTLINE(clang-analyzer-deadcode.DeadStores) */
        fd = -1;
    } else {
        io_close(&up[0][0]);
    }
    if (pid > 0)
        *over = e.socket;
    return pid;
}
