#include "proxy_service.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io.h"
#include "mem.h"
#include "random.h"
#include "safe_path.h"

#define ID_BYTES 16
#define ID_MAX 37 /* a UUID and its NUL */
#define NAME_MAX_ (ID_MAX + 8)

/* The kernel tells of an answer, except where the host writes to the file system behind its back. */
#define LOOK_MS 500
#define LOOK_MS_UNTOLD 50
#define BROKEN_MS 5000      /* an answer that can't become JSON any more stays as it is for so long */
#define CANCELLED_MS 600000 /* an answer that comes later than this to a call that was cancelled stays */

struct service_call {
    struct service *service;
    struct service_call *next, **link;
    char id[ID_MAX];
    struct buf request; /* until it has been written */
    off_t seen_size;    /* of an answer that wasn't whole */
    struct timespec seen_time;
    long long seen_at;
    char *fault;              /* why it can't become whole; NULL: it can */
    service_answer_fn answer; /* NULL: cancelled */
    void *arg;
    long long cancelled_at;
    unsigned round; /* in which it was looked after last */
};

struct service {
    struct loop *loop;
    char *requests, *responses;
    struct service_call *calls;
    struct loop_source *timer;
    int inotify; /* -1: not to be had */
    int watch;   /* of the responses; -1: none yet */
    struct loop_source *told;
    unsigned round;
};

static void look(void *arg);

/* ---- files ---- */

static void file_name(char name[NAME_MAX_], const struct service_call *c)
{
    snprintf(name, NAME_MAX_, "%s.json", c->id);
}

static void remove_from(const char *directory, const struct service_call *c)
{
    char name[NAME_MAX_];
    int dir FD_AUTO = safe_path_open_of(directory, NULL);
    file_name(name, c);
    if (dir >= 0)
        unlinkat(dir, name, 0);
}

static int write_at(int dir, const struct service_call *c)
{
    char hidden[NAME_MAX_], name[NAME_MAX_];
    snprintf(hidden, sizeof hidden, ".%s.new", c->id);
    file_name(name, c);
    int fd FD_AUTO = openat(dir, hidden, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0)
        return -1;
    if (io_write_all(fd, c->request.data, c->request.len) == 0 && renameat(dir, hidden, dir, name) == 0)
        return 0;
    int errnum = errno;
    unlinkat(dir, hidden, 0);
    errno = errnum;
    return -1;
}

/* 1: written. 0: the directory is not there yet. Who could exchange it could answer in the model's place. */
static int write_request(struct service_call *c, struct err *err)
{
    struct err why;
    int dir FD_AUTO = safe_path_open_of(c->service->requests, &why);
    if (dir < 0 && errno == EPERM)
        return err_set(err, ERR_INTERNAL, "no request can be written: %s", why.msg);
    if (dir >= 0 && write_at(dir, c) == 0) {
        buf_release(&c->request);
        return 1;
    }
    if (errno == ENOENT)
        return 0;
    return err_sys(err, ERR_INTERNAL, errno, "no request can be written to %s", c->service->requests);
}

/* An answer that hasn't changed since it was no JSON. One that is cut short may go on; one that is wrong can
 * only be replaced, or be filled in where a file system shows its length first: that is waited for a while.
 */
static int still_broken(const struct service_call *c, const char *name, struct err *err)
{
    if (!c->fault || now_ms() - c->seen_at < BROKEN_MS)
        return 0;
    return err_set(err, ERR_INTERNAL, "the answer %s/%s: %s", c->service->responses, name, c->fault);
}

static bool is_whole(struct service_call *c, struct span text, const struct stat *st)
{
    struct err why;
    free(c->fault);
    c->fault = NULL;
    c->seen_size = st->st_size;
    c->seen_time = st->st_mtim;
    c->seen_at = now_ms();
    if (json_check(text, &why) == 0)
        return true;
    if (!json_is_cut(text))
        c->fault = mem_strdup(why.msg);
    return false;
}

/* 1: it is whole, and has been removed. 0: not yet. */
static int read_answer(struct service_call *c, struct buf *text, struct err *err)
{
    char name[NAME_MAX_];
    struct stat st;
    struct err why;
    int dir FD_AUTO = safe_path_open_of(c->service->responses, &why);
    if (dir < 0 && errno == EPERM)
        return err_set(err, ERR_INTERNAL, "no answer is read: %s", why.msg);
    file_name(name, c);
    int fd FD_AUTO = dir < 0 ? -1 : openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return 0;
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_sys(err, ERR_INTERNAL, errno, "the answer %s/%s can't be read", c->service->responses,
                       name);
    if (!S_ISREG(st.st_mode))
        return err_set(err, ERR_INTERNAL, "the answer %s/%s is no file", c->service->responses, name);
    if (st.st_size == c->seen_size && st.st_mtim.tv_sec == c->seen_time.tv_sec &&
        st.st_mtim.tv_nsec == c->seen_time.tv_nsec)
        return still_broken(c, name, err);
    if (io_read_all(fd, text) < 0)
        return err_sys(err, ERR_INTERNAL, errno, "the answer %s/%s can't be read", c->service->responses,
                       name);
    if (!is_whole(c, span_of(text), &st)) {
        buf_truncate(text, 0);
        return 0;
    }
    unlinkat(dir, name, 0);
    return 1;
}

/* ---- calls ---- */

static void forget(struct service_call *c)
{
    *c->link = c->next;
    if (c->next)
        c->next->link = c->link;
    buf_release(&c->request);
    free(c->fault);
    free(c);
}

/* What an answer says: its result, or err. */
static int result_of(struct span answer, struct span *result, struct err *err)
{
    struct span error = {0};
    struct buf text BUF_AUTO = BUF_INIT;
    *result = (struct span){0};
    if (json_kind(answer) == JSON_OBJECT) {
        json_member(answer, "result", result, NULL);
        json_member(answer, "error", &error, NULL);
    }
    if (error.s && json_kind(error) != JSON_NULL) {
        if (!json_string_text(error, &text))
            buf_add(&text, error.s, error.n);
        return err_set(err, ERR_TOOL, "%s", buf_str(&text));
    }
    if (!result->s)
        return err_set(err, ERR_INTERNAL, "the service's answer has neither a result nor an error");
    return 0;
}

/* The call is over: its record is gone before its caller hears of it. */
static void finish(struct service_call *c, struct buf *text, struct err *failed)
{
    struct span result = {0};
    struct err err;
    service_answer_fn answer = c->answer;
    void *arg = c->arg;
    forget(c);
    if (!answer)
        return;
    if (!failed && result_of(span_of(text), &result, &err) < 0)
        failed = &err;
    answer(arg, result, text, failed);
}

/* True when the call is over. */
static bool go_on(struct service_call *c)
{
    struct err err;
    struct buf text BUF_AUTO = BUF_INIT;
    int got = 0;
    if (!c->answer && now_ms() - c->cancelled_at > CANCELLED_MS) {
        forget(c);
        return true;
    }
    if (c->request.len > 0)
        got = write_request(c, &err) < 0 ? -1 : 0;
    if (got == 0 && c->request.len == 0)
        got = read_answer(c, &text, &err);
    if (got < 0) { /* nobody asks for these any more */
        remove_from(c->service->requests, c);
        remove_from(c->service->responses, c);
    }
    if (got != 0)
        finish(c, &text, got < 0 ? &err : NULL);
    return got != 0;
}

/* ---- being told ---- */

static void watch(struct service *s)
{
    if (s->inotify >= 0 && s->watch < 0)
        s->watch = inotify_add_watch(s->inotify, s->responses, IN_CLOSE_WRITE | IN_MOVED_TO | IN_ONLYDIR);
}

static void on_told(void *arg, int events)
{
    struct service *s = arg;
    static char data[8192] __attribute__((aligned(__alignof__(struct inotify_event))));
    ssize_t n = read(s->inotify, data, sizeof data);
    (void)events;
    for (ssize_t i = 0; i < n;) {
        const struct inotify_event *event = (const void *)(data + i);
        if (event->mask & IN_IGNORED) /* the directory has gone; there may be another one */
            s->watch = -1;
        i += (ssize_t)(sizeof *event + event->len);
    }
    look(s);
}

/* Looks after all calls. A caller that hears of its end may end others: then the list is gone through anew.
 */
static void look(void *arg)
{
    struct service *s = arg;
    watch(s); /* before the files: what comes afterwards is told */
    s->round++;
    for (struct service_call *c = s->calls; c;) {
        /* One that has ended is in the list no more. NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
        struct service_call *next = c->next;
        bool again = false;
        if (c->round != s->round) {
            c->round = s->round;
            again = go_on(c);
        }
        c = again ? s->calls : next;
    }
    if (!s->calls)
        loop_drop(&s->timer);
    else if (s->timer)
        loop_timer_set(s->timer, s->watch < 0 ? LOOK_MS_UNTOLD : LOOK_MS);
}

/* ---- the outside ---- */

struct service *service_new(struct loop *loop, const char *directory)
{
    struct service *s = mem_zalloc(sizeof *s);
    s->loop = loop;
    s->requests = mem_printf("%s/requests", directory);
    s->responses = mem_printf("%s/responses", directory);
    s->watch = -1;
    s->inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (s->inotify >= 0)
        s->told = loop_fd(loop, s->inotify, LOOP_READ, on_told, s);
    return s;
}

void service_free(struct service *s)
{
    while (s->calls) {
        /* One that has ended is in the list no more. NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
        remove_from(s->requests, s->calls);
        remove_from(s->responses, s->calls);
        forget(s->calls);
    }
    loop_drop(&s->timer);
    loop_drop(&s->told);
    io_close(&s->inotify);
    free(s->requests);
    free(s->responses);
    free(s);
}

static void make_id(char id[ID_MAX])
{
    unsigned char b[ID_BYTES] = {0};
    if (random_bytes(b, sizeof b) < 0) { /* none in this container: the directory is this process's alone */
        static unsigned long long count;
        unsigned long long mine[] = {(unsigned long long)getpid(), ++count};
        memcpy(b, mine, sizeof b);
    }
    b[6] = (unsigned char)((b[6] & 0x0F) | 0x40); /* RFC 9562, version 4 */
    b[8] = (unsigned char)((b[8] & 0x3F) | 0x80);
    char *at = id;
    for (size_t i = 0; i < sizeof b; i++)
        at += snprintf(at, 4, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", b[i]);
}

static void *call(void *of, const char *method, struct span params, service_answer_fn answer, void *arg)
{
    struct service *s = of;
    struct service_call *c = mem_zalloc(sizeof *c);
    c->service = s;
    c->answer = answer;
    c->arg = arg;
    c->seen_size = -1;
    make_id(c->id);
    buf_init(&c->request, BUF_NO_MAX);
    buf_reserve(&c->request, params.n + 256);
    buf_addc(&c->request, '{');
    json_member_string(&c->request, "id", c->id);
    json_member_string(&c->request, "method", method);
    json_key(&c->request, "params");
    buf_add(&c->request, params.s, params.n);
    buf_addc(&c->request, '}');
    c->link = &s->calls;
    c->next = s->calls;
    if (c->next)
        c->next->link = &c->next;
    s->calls = c;
    if (!s->timer)
        s->timer = loop_timer(s->loop, 1, look, s);
    else
        loop_timer_set(s->timer, 1);
    return c;
}

static void cancel(void *call)
{
    struct service_call *c = call;
    if (c->request.len > 0) { /* nobody has seen it */
        forget(c);
        return;
    }
    remove_from(c->service->requests, c);
    c->answer = NULL;
    c->cancelled_at = now_ms();
}

struct proxy_source service_source(struct service *s)
{
    return (struct proxy_source){.of = s, .call = call, .cancel = cancel};
}
