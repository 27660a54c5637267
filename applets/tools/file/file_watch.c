/* The keeper of one watch. What was told stays until a poll says that it has arrived. Packed code, as
 * watch_tree.h. */
#include "tools/file/file_watch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands/server/server.h"
#include "glob.h"
#include "glob.h"
#include "io.h"
#include "mem.h"
#include "title.h"
#include "tools/file/file_path.h"
#include "tools/file/watch_tree.h"

#define QUIET_MS 30 /* nothing more has come for so long */
#define LATEST_MS 300
#define IDLE_MS 60000 /* nobody asks any more */
#define GONE_MS 1000
#define KEPT_MAX 262144   /* changes that nobody has fetched */
#define ANSWER_MAX 10000u /* of them in an answer */

struct change {
    char *path;
    const char *how;
    bool directory;
};

struct hosted {
    struct watch_tree *tree;
    struct keeper *keeper;
    struct keeper_service *service;
    char *path;
    struct change *changes;
    size_t first, n, room; /* of `changes` those from `first` on are left */
    size_t given;          /* and so many of them have been in an answer */
    long long told;        /* the number of the one before the first */
    struct rpc_call *poll; /* NULL: nobody waits */
    struct loop_source *settle, *idle, *wait;
    long long since_ms; /* the first event that has not been looked at; 0: there is none */
    bool incomplete, gone;
};

/* ---- what has changed ---- */

static void add(void *arg, const char *path, const char *how, bool directory)
{
    struct hosted *h = arg;
    const struct change *last = h->n > h->first ? &h->changes[h->n - 1] : NULL;
    if (h->n - h->first == KEPT_MAX - 1)
        path = ".", how = "dropped", directory = true;
    if (h->n - h->first >= KEPT_MAX ||
        (last && last->how == how && strcmp(last->path, path) == 0 && h->n - h->first > h->given))
        return;
    if (h->n == h->room)
        h->changes = mem_realloc(h->changes, (h->room = 2 * h->room + 64) * sizeof *h->changes);
    /* There is room now. NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
    h->changes[h->n++] = (struct change){mem_strdup(path), how, directory};
}

/* What has arrived. */
static void forget(struct hosted *h, long long number)
{
    while (h->first < h->n && h->told < number) {
        free(h->changes[h->first++].path);
        h->told++;
        h->given -= h->given > 0;
    }
    if (h->first * 2 > h->n) {
        memmove(h->changes, h->changes + h->first, (h->n - h->first) * sizeof *h->changes);
        h->n -= h->first;
        h->first = 0;
    }
}

static void put_changes(const struct hosted *h, struct buf *out, size_t n)
{
    json_key(out, "changes");
    buf_addc(out, '[');
    for (size_t i = 0; i < n; i++) {
        const struct change *c = &h->changes[h->first + i];
        buf_adds(out, i > 0 ? ",{" : "{");
        json_key(out, "path");
        file_put_path(out, c->path);
        json_member_string(out, "change", c->how);
        json_member_bool(out, "directory", c->directory);
        buf_addc(out, '}');
    }
    buf_addc(out, ']');
}

static void answer(struct hosted *h, bool stopped)
{
    struct rpc_call *call = h->poll;
    struct buf text BUF_AUTO = BUF_INIT;
    size_t left = h->n - h->first, n = left < ANSWER_MAX ? left : ANSWER_MAX;
    char *cursor MEM_AUTO = mem_printf("%s:%lld", h->keeper->name, h->told + (long long)n);
    h->poll = NULL;
    loop_drop(&h->wait);
    loop_timer_set(h->idle, h->gone ? GONE_MS : IDLE_MS);
    buf_addc(&text, '{');
    json_member_string(&text, "cursor", cursor);
    put_changes(h, &text, n);
    json_member_bool(&text, "ended", stopped || (h->gone && n == left));
    json_member_bool(&text, "incomplete", h->incomplete);
    buf_addc(&text, '}');
    h->given = n > h->given ? n : h->given;
    rpc_result_take(call, &text, 0);
}

static bool has_news(const struct hosted *h)
{
    return h->n > h->first || h->gone;
}

static void look(void *arg)
{
    struct hosted *h = arg;
    struct watch_seen seen = watch_tree_look(h->tree);
    h->since_ms = 0;
    if (seen.lost)
        add(h, ".", "overflow", true);
    h->incomplete = seen.incomplete;
    h->gone = h->gone || seen.gone;
    if (h->poll && has_news(h))
        answer(h, false);
}

static void on_event(void *arg, int events)
{
    struct hosted *h = arg;
    long long now = now_ms(), left;
    (void)events;
    if (!watch_tree_read(h->tree))
        return;
    if (h->since_ms == 0)
        h->since_ms = now;
    left = h->since_ms + LATEST_MS - now;
    loop_timer_set(h->settle, left < 1 ? 1 : left < QUIET_MS ? left : QUIET_MS);
}

/* ---- calls ---- */

static void on_idle(void *arg)
{
    struct hosted *h = arg;
    if (!h->poll)
        keeper_end(h->service, NULL, KEEPER_STOPPED);
}

static void on_wait(void *arg)
{
    answer(arg, false);
}

static void poll_gone(void *arg)
{
    struct hosted *h = arg;
    h->poll = NULL;
    loop_drop(&h->wait);
    loop_timer_set(h->idle, IDLE_MS);
}

static void begin_wait(struct hosted *h, struct rpc_call *call, double timeout)
{
    struct rpc_call *before = h->poll;
    struct err err;
    loop_drop(&h->wait);
    h->poll = call;
    rpc_on_abandon(call, poll_gone, h);
    err_set(&err, ERR_TOOL, "another client asks this watch now");
    if (before)
        rpc_fail_kind(before, &err, "busy");
    if (has_news(h))
        answer(h, false);
    else if (timeout >= 0)
        h->wait = loop_timer(h->keeper->base.loop, (int64_t)(timeout * 1000) + 1, on_wait, h);
}

static void poll(struct rpc_call *call, struct span params, void *ctx)
{
    struct hosted *h = ctx;
    struct watch_params p = WATCH_DEFAULTS;
    char owner[IPC_NAME_MAX];
    long long number = 0;
    struct err err;
    if (!rpc_unpack(call, &watch_params_table, params, &p))
        return;
    bool stop = p.stop, ours = p.cursor.s && watch_cursor(p.cursor.s, owner, &number) && number >= h->told &&
                               number <= h->told + (long long)(h->n - h->first);
    double timeout = p.timeout;
    params_release(&watch_params_table, &p);
    if (!ours) {
        err_set(&err, ERR_TOOL,
                "that is no cursor of this watch: the last one that was received is to be given");
        rpc_fail_kind(call, &err, "not_found");
        return;
    }
    forget(h, number);
    begin_wait(h, call, timeout);
    if (stop && h->poll)
        answer(h, true);
    if (stop)
        keeper_end(h->service, NULL, KEEPER_STOPPED);
}

static void status(struct rpc_call *call, struct span params, void *ctx)
{
    const struct hosted *h = ctx;
    struct buf text BUF_AUTO = BUF_INIT;
    (void)params;
    buf_addc(&text, '{');
    json_member_string(&text, "path", h->path);
    json_member_int(&text, "unread_changes", (long long)(h->n - h->first));
    keeper_put_usage(&text, h->service);
    buf_addc(&text, '}');
    rpc_result(call, span_of(&text));
}

static pid_t hang_up(void *ctx)
{
    (void)ctx;
    return 0;
}

static const struct rpc_method methods[] = {{.name = "file_watch", .run = poll}, {0}};
static const struct tool tool = {.keeper = methods};

int watch_start_in_keeper(struct keeper *k, void *arg, struct err *err)
{
    const struct starting *s = arg;
    const struct watch_params *p = s->params;
    struct hosted *h = mem_zalloc(sizeof *h);
    struct watch_tree_wants wants = {.exclude = p->exclude.list,
                                     .n_exclude = p->exclude.n,
                                     .deep = p->recursive,
                                     .from = k->base.start_dir,
                                     .user = s->user,
                                     .tell = add,
                                     .arg = h};
    if (glob_check_all(p->exclude.list, p->exclude.n, "exclude", err) < 0)
        return -1;
    h->keeper = k;
    h->path = file_path(&p->path);
    h->tree = watch_tree_new(h->path, &wants, err);
    if (!h->tree) {
        k->kind = file_kind_of(errno);
        return -1;
    }
    h->told = wall_ms();
    h->settle = loop_timer(k->base.loop, IDLE_MS, look, h);
    h->idle = loop_timer(k->base.loop, IDLE_MS, on_idle, h);
    loop_fd(k->base.loop, watch_tree_fd(h->tree), LOOP_READ, on_event, h);
    char *title MEM_AUTO = mem_printf("toolbox %s", k->name);
    title_set(title);
    h->service = keeper_serve(k, &tool, h, status, hang_up);
    if (p->ends_with > 0)
        keeper_ends_with(h->service, (pid_t)p->ends_with);
    snprintf(k->word, sizeof k->word, "%lld", h->told);
    return 0;
}
