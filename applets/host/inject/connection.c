#include "host/inject/connection.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client.h"
#include "host/inject/inject_one.h"
#include "io.h"
#include "mem.h"
#include "place.h"
#include "proc.h"
#include "rpc.h"
#include "sha256.h"

#define ASK_MS 5000
#define HEAR_MS 2000 /* for all that are asked at the same time */
#define NAME_DIGITS 16
#define LOCK_STEP_US 20000
#define LOOKS 3

static const char folder[] = "connections";

int connection_dir(struct buf *path, struct err *err)
{
    struct place place PLACE_AUTO = PLACE_INIT;
    if (place_open(&place, err) < 0)
        return -1;
    buf_addf(path, "%s/%s", place.path, folder);
    return place_subdir(&place, folder, true, err);
}

int connection_find_dir(void)
{
    struct buf path BUF_AUTO = BUF_INIT;
    int dir = -1;
    for (unsigned n = 0; dir < 0 && place_candidate(n, &path); n++) {
        struct place place PLACE_AUTO = PLACE_INIT;
        if (place_enter(&place, path.data, false, NULL) == 0)
            dir = place_subdir(&place, folder, false, NULL);
    }
    return dir;
}

/* ---- names ---- */

static void add_text(struct sha256 *sum, const char *text)
{
    sha256_add(sum, text ? text : "", text ? strlen(text) : 0);
    sha256_add(sum, text ? "\1" : "", 1);
}

/* Of a file that a runtime reads: whether it is still the same one. */
static void add_file(struct sha256 *sum, const char *dir, const char *name)
{
    struct stat st;
    char *path MEM_AUTO = mem_printf("%s%s", dir ? dir : "", name);
    char *text MEM_AUTO = stat(path, &st) < 0
                              ? NULL
                              : mem_printf("%s %llu %llu %lld %lld.%ld", path, (unsigned long long)st.st_dev,
                                           (unsigned long long)st.st_ino, (long long)st.st_size,
                                           (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
    add_text(sum, text);
}

static void add_surroundings(struct sha256 *sum)
{
    static const char *const prefixes[] = {"DOCKER_",        "CONTAINER_", "CONTAINERD_", "KUBE", "PODMAN_",
                                           "SSH_AUTH_SOCK=", "HOME=",      "PATH=",       "XDG_", NULL};
    const char *home = getenv("HOME"), *docker = getenv("DOCKER_CONFIG"), *kube = getenv("KUBECONFIG");
    for (const char *const *prefix = prefixes; *prefix; prefix++)
        for (char **variable = environ; *variable; variable++)
            if (strncmp(*variable, *prefix, strlen(*prefix)) == 0)
                add_text(sum, *variable);
    add_file(sum, docker ? docker : home, docker ? "/config.json" : "/.docker/config.json");
    add_file(sum, kube ? kube : home, kube ? "" : "/.kube/config");
    add_file(sum, home, "/.ssh/config");
}

void connection_name(const struct inject_options *o, const struct target *t, char name[IPC_NAME_MAX])
{
    char digits[SHA256_HEX_SIZE];
    struct sha256 *sum = sha256_begin();
    char *cwd MEM_AUTO = getcwd(NULL, 0);
    add_text(sum, t->text);
    add_text(sum, o->dir);
    add_text(sum, o->name);
    add_text(sum, o->user);
    add_text(sum, o->runtimes.runtime);
    add_text(sum, o->runtimes.root_exec);
    add_surroundings(sum);
    /* Words may name a program by a relative path. */
    add_text(sum, t->kind->program && !o->runtimes.runtime ? NULL : cwd);
    sha256_end(sum, digits);
    snprintf(name, IPC_NAME_MAX, "to-%.*s", NAME_DIGITS, digits);
}

int connection_open(const struct inject_options *o, const struct target *t)
{
    char name[IPC_NAME_MAX];
    int dir FD_AUTO = connection_find_dir();
    if (dir < 0)
        return -1;
    connection_name(o, t, name);
    return ipc_connect(dir, name, IPC_WAIT_S);
}

/* ---- one begins it, others wait ---- */

#define LOCK_NAME_MAX (IPC_NAME_MAX + 8)

static void lock_name(char file[LOCK_NAME_MAX], const char *name)
{
    char socket[IPC_NAME_MAX];
    ipc_name(socket, name); /* that of another build is another connection */
    snprintf(file, LOCK_NAME_MAX, ".lock-%s", socket);
}

/* 1: it is ours; 0: somebody else has it; -1 with errno. */
static int try_lock(int dirfd, const char *file, int *lock)
{
    struct stat st;
    *lock = openat(dirfd, file, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (*lock < 0)
        return -1;
    if (flock(*lock, LOCK_EX | LOCK_NB) == 0 && fstat(*lock, &st) == 0 && st.st_nlink > 0)
        return 1;
    io_close(lock); /* or who had it has just taken it away */
    return 0;
}

int connection_lock(int dirfd, const char *name, int wait_ms, struct err *err)
{
    char file[LOCK_NAME_MAX];
    int lock, ours;
    lock_name(file, name);
    err->code = 0;
    for (long long until = now_ms() + wait_ms; (ours = try_lock(dirfd, file, &lock)) == 0;
         usleep(LOCK_STEP_US)) {
        int there FD_AUTO = ipc_connect(dirfd, name, IPC_WAIT_S);
        if (there >= 0)
            return -1;
        if (now_ms() >= until)
            return err_set(err, ERR_TOOL, "another process has been connecting for %g s", wait_ms / 1000.0);
    }
    return ours > 0 ? lock
                    : err_sys(err, ERR_TOOL, errno, "cannot make a lock in the directory of connections");
}

void connection_unlock(int dirfd, const char *name)
{
    char file[LOCK_NAME_MAX];
    lock_name(file, name);
    unlinkat(dirfd, file, 0);
}

void connection_end(const struct inject_options *o, const struct target *t)
{
    char name[IPC_NAME_MAX];
    struct err err;
    struct buf states BUF_AUTO = BUF_INIT;
    int dir FD_AUTO = connection_find_dir();
    if (dir < 0)
        return;
    connection_name(o, t, name);
    int lock FD_AUTO = connection_lock(dir, name, o->timeout_ms, &err);
    if (lock >= 0)
        connection_unlock(dir, name);
    connection_ask(NULL, t->text, CONNECTION_STOP, &states, NULL);
}

/* ---- one request ---- */

/* The next line, which stays in `in` until it is consumed with its newline. -1 with errno: ETIMEDOUT, or
 * another way in which it has ended. */
static int read_line(int fd, struct buf *in, long long until, struct span *line)
{
    for (size_t looked = 0;;) {
        const char *end = in->len > looked ? memchr(in->data + looked, '\n', in->len - looked) : NULL;
        if (end) {
            *line = (struct span){in->data, (size_t)(end - in->data)};
            return 0;
        }
        looked = in->len;
        long long left = until - now_ms();
        struct pollfd p = {.fd = fd, .events = POLLIN};
        int ready = poll(&p, 1, left <= 0 ? 0 : left < 3600000 ? (int)left : 3600000);
        if (ready == 0 && now_ms() >= until)
            return errno = ETIMEDOUT, -1;
        if (ready <= 0)
            continue;
        if (buf_reserve(in, 65536) < 0)
            return errno = EFBIG, -1;
        ssize_t n = recv(fd, in->data + in->len, 65536, 0);
        if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN))
            return errno = ECONNRESET, -1;
        in->len += n > 0 ? (size_t)n : 0;
    }
}

/* The connection has ended, and the one request isn't among those that were open. */
static bool was_not_taken(struct span line, struct span method)
{
    struct span params, open;
    return json_string_is(method, "rpc.ended") && json_member(line, "params", &params, NULL) &&
           json_kind(params) == JSON_OBJECT && json_member(params, "open", &open, NULL) &&
           span_is(open, "[]");
}

/* Other notifications are passed over. */
static int read_answer(int fd, struct buf *in, long long until, struct span *line)
{
    struct span method;
    for (;;) {
        if (read_line(fd, in, until, line) < 0)
            return -1;
        if (json_check(*line, NULL) < 0 || json_kind(*line) != JSON_OBJECT)
            return errno = EPROTO, -1;
        if (!json_member(*line, "method", &method, NULL))
            return 0;
        if (was_not_taken(*line, method))
            return errno = ECONNABORTED, -1;
        buf_consume(in, line->n + 1);
    }
}

bool connection_request(int fd, struct inject_request *q, int timeout_ms)
{
    static const char ack[] = "{\"jsonrpc\":\"2.0\",\"method\":\"rpc.ack\",\"params\":{\"ids\":[1]}}\n";
    struct buf in BUF_AUTO = {.max = INJECT_ANSWER_MAX};
    struct span line;
    int own FD_AUTO = fd;
    long long until = now_ms() + timeout_ms;
    (void)own;                /* closed at the end */
    signal(SIGPIPE, SIG_IGN); /* who doesn't read any more is seen by the error */
    /* It says hello when it takes us: before that it has read nothing. */
    if (read_line(fd, &in, until, &line) < 0)
        return false;
    buf_consume(&in, line.n + 1);
    q->sent = true;
    if (io_write_all(fd, q->text.s, q->text.n) == 0 && read_answer(fd, &in, until, &line) == 0) {
        q->answered = true;
        if (q->deliver(q->deliver_arg, line))
            io_write_all(fd, ack, sizeof ack - 1);
        return true;
    }
    if (errno == ECONNABORTED)
        return q->sent = false;
    q->how = errno == ETIMEDOUT ? TRANSPORT_TIMEOUT : TRANSPORT_ENDED;
    q->status = 1;
    buf_truncate(&q->said, 0);
    buf_adds(&q->said, "the connection that was kept has ended");
    return true;
}

/* ---- those that there are ---- */

/* One who is asked: all of them first, then each is heard. */
struct peer {
    int fd; /* -1: so many wait for him already that nobody else can */
    pid_t pid;
    char file[IPC_NAME_MAX];
};

struct asked {
    int dirfd;
    const char *name, *target, *method; /* name: of one of this build's; NULL: all, other builds' too */
    struct buf *states;
    struct peer *peers;
    size_t n_peers;
    long long until;
    int n, silent, missed; /* missed: sockets of which nobody is there (any more) */
};

static bool put_result(void *arg, struct span answer)
{
    struct buf *out = arg;
    struct span result;
    if (client_result(answer, &result, NULL) < 0)
        return false;
    buf_add(out, result.s, result.n);
    return true;
}

/* Who is there, but says nothing (stopped, or held up): told as a state of its own. */
static void put_silent(struct asked *a, const struct peer *p, const char *state)
{
    a->silent++;
    if (a->name || a->target)
        return;
    buf_adds(a->states, a->states->len > 1 ? ",{" : "{");
    json_member_string(a->states, "state", state);
    if (p->pid > 0)
        json_member_int(a->states, "pid", p->pid);
    json_member_string(a->states, "socket", p->file);
    buf_addc(a->states, '}');
}

static void put_question(struct buf *text, const char *method, struct span params)
{
    rpc_put_request(text, (struct span){"1", 1}, method, params);
    buf_addc(text, '\n');
}

static bool ask(int dirfd, const char *file, const char *method, struct span params, struct buf *result)
{
    struct buf text BUF_AUTO = BUF_INIT;
    int fd = ipc_connect_file(dirfd, file, IPC_WAIT_S);
    if (fd < 0)
        return false;
    put_question(&text, method, params);
    struct inject_request q = {
        .text = span_of(&text), .deliver = put_result, .deliver_arg = result, .said = BUF_INIT};
    bool made = connection_request(fd, &q, ASK_MS) && q.answered && result->len > 0;
    buf_release(&q.said);
    return made;
}

static bool is_stopped(pid_t pid)
{
    struct proc p;
    return pid > 0 && proc_read(pid, &p) == 0 && (p.state == 'T' || p.state == 't');
}

/* Who is to end takes that only when he goes on. */
static void ask_file(struct asked *a, const char *file)
{
    struct buf text BUF_AUTO = BUF_INIT;
    struct peer p = {.fd = ipc_connect_file(a->dirfd, file, 0)};
    uid_t uid;
    if (p.fd < 0 && errno != EAGAIN) {
        a->missed++;
        return;
    }
    snprintf(p.file, sizeof p.file, "%s", file);
    if (p.fd >= 0 && ipc_peer(p.fd, &p.pid, &uid) == 0 && strcmp(a->method, CONNECTION_STOP) == 0 &&
        is_stopped(p.pid))
        kill(p.pid, SIGCONT);
    put_question(&text, CONNECTION_STATUS, (struct span){0});
    if (p.fd >= 0)
        io_write_all(p.fd, text.data, text.len);
    a->peers = mem_realloc(a->peers, (a->n_peers + 1) * sizeof *a->peers);
    a->peers[a->n_peers++] = p;
}

static void hear(struct asked *a, struct peer *p)
{
    struct buf in BUF_AUTO = {.max = INJECT_ANSWER_MAX};
    struct buf state BUF_AUTO = BUF_INIT;
    struct buf result BUF_AUTO = BUF_INIT;
    struct span line, target;
    int fd FD_AUTO = p->fd;
    if (fd < 0 || is_stopped(p->pid)) {
        put_silent(a, p, fd < 0 ? "no answer" : "stopped");
        return;
    }
    bool heard = read_answer(fd, &in, a->until, &line) == 0;
    if (!heard && errno == ETIMEDOUT) {
        put_silent(a, p, "no answer");
        return;
    }
    if (!heard || !put_result(&state, line)) {
        a->missed++;
        return;
    }
    if (a->target &&
        !(json_member(span_of(&state), "target", &target, NULL) && json_string_is(target, a->target)))
        return;
    if (strcmp(a->method, CONNECTION_STATUS) != 0 &&
        !ask(a->dirfd, p->file, a->method, (struct span){0}, &result))
        return;
    buf_adds(a->states, a->states->len > 1 ? "," : "");
    buf_add(a->states, state.data, state.len);
    a->n++;
}

static void ask_one(void *arg, const char *name)
{
    struct asked *a = arg;
    char file[IPC_NAME_MAX];
    if ((!a->name || strcmp(a->name, name) == 0) && ipc_name(file, name) == 0)
        ask_file(a, file);
}

static void ask_other(void *arg, const char *file)
{
    char owner[IPC_NAME_MAX], build[BUILD_ID_SIZE];
    if (ipc_split(file, owner, build))
        ask_file(arg, file);
}

int connection_ask(const char *name, const char *target, const char *method, struct buf *states, int *silent)
{
    int dir FD_AUTO = connection_find_dir();
    struct asked a = {.dirfd = dir, .name = name, .target = target, .method = method, .states = states};
    signal(SIGPIPE, SIG_IGN);
    buf_addc(states, '[');
    for (int looks = 0; dir >= 0 && looks < LOOKS && (looks == 0 || a.missed > 0) && a.n + a.silent == 0;
         looks++) {
        usleep(looks > 0 ? LOCK_STEP_US : 0); /* one that breaks, or is there again, takes another name */
        a.missed = 0;
        a.n_peers = 0;
        ipc_each(dir, ask_one, &a);
        if (!name)
            ipc_each_other(dir, ask_other, &a);
        a.until = now_ms() + HEAR_MS;
        for (size_t i = 0; i < a.n_peers; i++)
            hear(&a, &a.peers[i]);
    }
    free(a.peers);
    buf_addc(states, ']');
    if (silent)
        *silent = a.silent;
    return a.n;
}

void connection_lengthen(int dirfd, const char *name, int persist_ms)
{
    char file[IPC_NAME_MAX];
    struct buf params BUF_AUTO = BUF_INIT;
    struct buf state BUF_AUTO = BUF_INIT;
    buf_addc(&params, '{');
    if (persist_ms < 0)
        json_member_int(&params, "persist_s", -1);
    else
        json_member_seconds(&params, "persist_s", persist_ms);
    buf_addc(&params, '}');
    if (ipc_name(file, name) == 0)
        ask(dirfd, file, CONNECTION_STATUS, span_of(&params), &state);
}
