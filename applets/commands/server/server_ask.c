/* One question to many keepers at once. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "mem.h"
#include "server_internal.h"

struct ask;

struct question {
    struct ask *ask;
    size_t index;
    struct client *client;
};

struct ask {
    struct server *server;
    const char *prefix;
    struct reply *replies;
    struct question *questions;
    size_t n, open;
    struct buf request;
    server_replies_fn done;
    void *arg;
};

static bool has_prefix(const char *name, const char *prefix)
{
    size_t n = prefix ? strlen(prefix) : 0;
    return !prefix || (strncmp(name, prefix, n) == 0 && (name[n] == '\0' || name[n] == '_'));
}

static void collect(void *arg, const char *owner)
{
    struct ask *a = arg;
    if (!ipc_is_keeper(owner) || !has_prefix(owner, a->prefix))
        return;
    a->replies = mem_realloc(a->replies, (a->n + 1) * sizeof *a->replies);
    a->replies[a->n] = (struct reply){.result = BUF_INIT};
    snprintf(a->replies[a->n++].name, IPC_NAME_MAX, "%s", owner);
}

/* As people count: X, X_1, X_2, X_10. */
static int by_name(const void *left, const void *right)
{
    const char *a = ((const struct reply *)left)->name, *b = ((const struct reply *)right)->name;
    size_t n = strlen(a), m = strlen(b);
    return n != m ? (n < m ? -1 : 1) : strcmp(a, b);
}

static void finish(struct ask *a)
{
    if (a->open > 0)
        return;
    a->done(a->arg, a->replies, a->n);
    for (size_t i = 0; i < a->n; i++)
        buf_release(&a->replies[i].result);
    free(a->replies);
    buf_release(&a->request);
    free(a->questions);
    free(a);
}

static void answered(void *arg, struct span answer, const struct err *err)
{
    struct question *q = arg;
    struct ask *a = q->ask;
    struct span result;
    if (!err && client_result(answer, &result, NULL) == 0)
        buf_add(&a->replies[q->index].result, result.s, result.n);
    client_end(q->client, true);
    a->open--;
    finish(a);
}

void server_ask(struct server *s, const char *prefix, const char *method, int timeout_ms,
                server_replies_fn done, void *arg)
{
    struct ask *a = mem_zalloc(sizeof *a);
    *a =
        (struct ask){.server = s, .prefix = prefix, .done = done, .arg = arg, .open = 1, .request = BUF_INIT};
    ipc_each(s->base.dirfd, collect, a);
    if (a->n > 0)
        qsort(a->replies, a->n, sizeof *a->replies, by_name);
    a->questions = mem_zalloc(a->n * sizeof *a->questions);
    rpc_put_request(&a->request, (struct span){"1", 1}, method, (struct span){0});
    for (size_t i = 0; i < a->n; i++) {
        uid_t uid;
        int fd = ipc_connect(s->base.dirfd, a->replies[i].name, 0);
        if (fd < 0)
            continue;
        if (ipc_peer(fd, &a->replies[i].pid, &uid) == 0 && s->ending)
            kill(a->replies[i].pid, SIGCONT); /* one that was stopped is to end as well */
        a->questions[i] = (struct question){.ask = a, .index = i};
        a->open++;
        a->questions[i].client =
            client_start(s->base.loop, fd, span_of(&a->request), timeout_ms, answered, &a->questions[i]);
    }
    a->open--;
    finish(a);
}
